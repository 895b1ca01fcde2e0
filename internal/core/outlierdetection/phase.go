package outlierdetection

import (
	"cmp"
	"slices"
	"time"
)

// Phase says how much of a tier is left, where Config.ReportEmptied is set.
//
// A tier of few endpoints is soon ejected as a whole. If its children were told of that,
// calls would fail although nothing else could serve them, and A50's times would bring
// the whole tier back and eject it again for ever. So the children are told of ejections
// only while an endpoint is sound: neither ejected nor unproven, and connected, or
// connecting without a failed attempt. The phase goes to the parent, which knows of other
// tiers:
//
//	Usable    an endpoint is sound, or the tier was not emptied
//	Emptied   none is sound, and some are connected, or connect again after they were
//	          ejected by calls that ended with their connection
//	HalfOpen  from the next interval on, or at once where the connected ones were all
//	          ejected by calls that ended with their connection: a few calls are to show
//	          whether they answer
//
// It is Usable again when they do; see judge. A tier that loses its last connection stays
// what it is, however often that happens and for however long.
type Phase uint8

// The phases.
const (
	Usable Phase = iota
	Emptied
	HalfOpen
)

// String returns the phase in lower case.
func (p Phase) String() string { return [...]string{"usable", "emptied", "half-open"}[p] }

// Phase returns the phase.
func (c *Core[T]) Phase() Phase { return c.phase }

// Interval returns how long the parent has to send a call to a tier that is half-open.
func (c *Core[T]) Interval() time.Duration { return c.config.Interval }

// Connection is what an endpoint's connection is.
type Connection uint8

// The connections.
const (
	Connecting Connection = iota // for the first time or again, and has not failed since it was Connected
	Connected                    // calls could go there
	Broken                       // an attempt to connect has failed since it was Connected
	Absent                       // nobody connects to it
)

// String returns the connection in lower case.
func (c Connection) String() string {
	return [...]string{"connecting", "connected", "broken", "absent"}[c]
}

// Connection handles a change of an endpoint's connection. One that is Broken stays so
// while it connects.
func (c *Core[T]) Connection(e *Endpoint[T], now Connection) {
	before := e.connection
	if before == now || before == Broken && now == Connecting {
		return
	}
	c.count(e, -1)
	e.connection = now
	e.lost = e.lost || before == Connected && e.ejected && e.ended
	c.count(e, 1)
	if before == Broken && now == Connected && c.phase != Usable && !e.Doubted() && e.present {
		c.set(e, false, true)
	}
	c.settle()
}

// NoneConnects handles that no endpoint is connected or connecting that the children do not
// see as ejected: those that seemed to connect wait for another attempt.
func (c *Core[T]) NoneConnects() {
	if !c.tells || !c.config.ReportEmptied || c.counts.connecting == 0 {
		return
	}
	for _, e := range c.endpoints {
		if e.connection == Connecting {
			c.count(e, -1)
			e.connection = Broken
			c.count(e, 1)
		}
	}
	c.settle()
}

// settle finds the phase, and what the children are to be told.
func (c *Core[T]) settle() {
	n := c.counts
	switch {
	case !c.config.ReportEmptied || n.ejected+n.unproven == 0 || n.sound > 0:
		c.phase = Usable
	case n.connected+n.returning == 0: // It stays what it was.
	case c.phase == Usable:
		c.phase = Emptied
		for _, e := range c.doubted {
			c.renew(e)
		}
	}
	if c.phase == Emptied && n.connected > 0 && n.connected == n.lost {
		c.phase = HalfOpen
	}
	c.tell()
}

// tell tells the children of those that were ejected or came back, and of all that are
// ejected where that is to be told from now on, or not any more. A child hears of an
// ejection with a new connection, before the connection is heard of here. So it is told of
// none while nothing is sound: calls would fail, before the tier is emptied.
func (c *Core[T]) tell() {
	if tells := !c.config.ReportEmptied || c.counts.sound > 0; tells != c.tells {
		c.tells = tells
		c.touched = append(c.touched, c.doubted...)
	}
	if len(c.touched) == 0 {
		return
	}
	slices.SortFunc(c.touched, func(a, b *Endpoint[T]) int { return cmp.Compare(a.index, b.index) })
	for _, e := range c.touched {
		c.looked++
		if tell := e.ejected && c.tells; tell != e.told && e.present {
			e.told = tell
			c.outcome.Changes = append(c.outcome.Changes, Change[T]{e, tell})
		}
	}
	clear(c.touched)
	c.touched = c.touched[:0]
}
