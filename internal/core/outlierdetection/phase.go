package outlierdetection

import (
	"cmp"
	"slices"
	"time"
)

// Phase describes whether the calls of a priority succeed. It changes only if Config.ReportEmptied
// is set.
//
// In a priority with few endpoints, all of them may soon be ejected. If the child policy saw that,
// calls would fail although there may be no other priority, and A50's timer would return all
// endpoints and eject them again, over and over. The child therefore sees ejections only while some
// endpoint is sound. A sound endpoint is neither ejected nor unproven, and it is connected, or
// connecting without a failed attempt. In addition, the policy reports the phase to its parent,
// which may have other priorities:
//
//	Usable    some endpoint is sound, or no endpoint is ejected or unproven
//	Emptied   no endpoint is sound, and some are connected, or reconnect after they were
//	          ejected by calls that ended with their connection
//	HalfOpen  a few calls must show whether the endpoints answer; this phase follows
//	          Emptied after the next Sweep, or immediately if all connected endpoints were
//	          ejected by calls that ended with their connection
//
// The phase becomes Usable again when endpoints have answered calls (see judge). The loss of the
// last connection does not change the phase.
type Phase uint8

// The phases of a priority.
const (
	Usable Phase = iota
	Emptied
	HalfOpen
)

func (p Phase) String() string { return [...]string{"usable", "emptied", "half-open"}[p] }

// Phase returns the current phase.
func (c *Core[T]) Phase() Phase { return c.phase }

// Interval returns the time within which the parent must send a call to a HalfOpen priority.
func (c *Core[T]) Interval() time.Duration { return c.config.Interval }

// Connection is the state of an endpoint's connection.
type Connection uint8

// The states of a connection.
const (
	Connecting Connection = iota // no attempt has failed since the endpoint was last Connected
	Connected
	Broken // an attempt has failed since the endpoint was last Connected
	Absent // no child policy connects to the endpoint
)

func (c Connection) String() string {
	return [...]string{"connecting", "connected", "broken", "absent"}[c]
}

// Connection records the state of an endpoint's connection. Once it is Broken, it stays so during
// further attempts, until the endpoint is Connected.
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

// NoneConnects is called when the child policy reports TRANSIENT_FAILURE. Connecting endpoints then
// become Broken: their attempts have failed, and they only wait for the next one.
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

func (c *Core[T]) settle() {
	n := c.counts
	switch {
	case !c.config.ReportEmptied || n.ejected+n.unproven == 0 || n.sound > 0:
		c.phase = Usable
	case n.connected+n.returning == 0: // The phase stays the same.
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

// tell updates which endpoints the child policy sees as ejected. While no endpoint is sound, it
// sees no ejection, even in the phase Usable. Otherwise, calls would fail after an ejection until
// Core learns that the last connection is lost.
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
