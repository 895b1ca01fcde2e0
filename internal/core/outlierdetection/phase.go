package outlierdetection

import "time"

// Phase says how much of a tier is left, where Config.ReportEmptied is set.
//
// A tier of few endpoints is soon ejected as a whole. If its children were told of that,
// calls would fail although nothing else could serve them, and A50's times would bring
// the whole tier back and eject it again for ever. So the children are told of ejections
// only while something is connected that is not ejected. The phase goes to the parent,
// which knows of other tiers:
//
//	Usable    an endpoint that is not ejected is connected, or the tier was not emptied
//	Emptied   all that are connected are ejected, and have not been tried since
//	HalfOpen  from the next interval on: a few calls are to show whether they answer
//
// It is Usable again when they do; see judge. A tier that loses its last connection stays
// what it is, and comes back however often that happens. After an interval in which it had
// no connection at all, nothing could be shown, and A50's times hold; see Sweep.
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

// Connected handles that an endpoint has got a connection, or has lost its last one.
func (c *Core[T]) Connected(e *Endpoint[T], connected bool) {
	if e.connected != connected {
		c.countConnected(e, -1)
		e.connected = connected
		c.countConnected(e, 1)
		c.settle()
	}
}

// settle finds the phase, and what the children are to be told.
func (c *Core[T]) settle() {
	switch {
	case !c.config.ReportEmptied || c.ejected == 0 || c.left > 0:
		c.phase = Usable
	case c.phase == Usable && c.connected > 0:
		c.phase = Emptied
	}
	// A child hears of an ejection with a new connection, before the connection is heard of
	// here. So it is told of none while nothing is connected: calls would fail, before the
	// tier is emptied.
	tells := !c.config.ReportEmptied || c.left > 0
	if !c.dirty && tells == c.tells {
		return
	}
	c.dirty, c.tells = false, tells
	for _, e := range c.endpoints {
		if tell := e.ejected && tells; tell != e.told {
			e.told = tell
			c.changes = append(c.changes, Change[T]{e, tell})
		}
	}
}

// judge looks at the calls that an emptied tier has had for one interval, whatever its
// ejection times. The first interval does not count: it began with the calls for which
// the tier was emptied. The tier comes back if at least half of the endpoints that were
// called have answered. With it come those that have, and those that were not called;
// those that have not stay ejected, from now on.
func (c *Core[T]) judge(now time.Time) {
	if c.phase == Emptied {
		c.phase = HalfOpen
		return
	}
	called, answered := 0, 0
	for _, e := range c.endpoints {
		if e.calls() > 0 {
			called++
			if answers(e) {
				answered++
			}
		}
	}
	if answered == 0 || 2*answered < called {
		return
	}
	for _, e := range c.endpoints {
		switch {
		case !e.ejected:
		case answers(e): // or was not called
			c.uneject(e)
		default:
			e.ejectedAt = now
		}
	}
}

// answers returns whether at most one in ten of an endpoint's calls failed.
func answers[T any](e *Endpoint[T]) bool {
	return e.Failures*10 <= e.calls()
}
