package outlierdetection

import (
	"cmp"
	"slices"
	"time"
)

// Phase describes whether the calls of a priority succeed. It changes only if Config.ReportEmptied
// is set.
//
// In a priority with few endpoints, all of them may soon be ejected. If the child policy saw these
// ejections, calls would fail although there may be no other priority, and A50's timer would
// repeatedly return all endpoints and eject them again. The child therefore sees ejections only
// while at least one endpoint is sound. A sound endpoint is neither ejected nor unproven, and it is
// connected, or connecting without a failed attempt. In addition, the policy reports the phase to
// its parent, which may have other priorities:
//
//	Usable    some endpoint is sound, or no endpoint is ejected or unproven
//	Emptied   no endpoint is sound, and some endpoints are connected, or are reconnecting
//	          after calls that ended with their connection caused their ejection
//	HalfOpen  a few calls must show whether the endpoints answer; this phase follows
//	          Emptied after the next Sweep, or immediately if all connected endpoints were
//	          ejected because calls ended with their connection
//
// The phase becomes Usable again when endpoints have answered calls (see checkRecovery). The loss
// of the last connection does not change the phase.
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

// Connection records the state of an endpoint's connection. A Broken connection remains Broken
// during further attempts to connect, until the endpoint is Connected.
func (c *Core[T]) Connection(e *Endpoint[T], now Connection) {
	before := e.connection
	if before == now || before == Broken && now == Connecting {
		return
	}
	c.addToCounts(e, -1)
	e.connection = now
	e.connectionLost = e.connectionLost || before == Connected && e.ejected && e.endedByUnavailable
	c.addToCounts(e, 1)
	if before == Broken && now == Connected && c.phase != Usable && !e.Doubted() && e.present {
		c.setStatus(e, false, true)
	}
	c.updatePhase()
}

// AllConnectsFailed is called when the child policy reports TRANSIENT_FAILURE. The Connecting
// endpoints then become Broken: their last attempts have failed, and they wait for their next
// attempts.
func (c *Core[T]) AllConnectsFailed() {
	if !c.showsEjections || !c.config.ReportEmptied || c.counts.connecting == 0 {
		return
	}
	for _, e := range c.endpoints {
		if e.connection == Connecting {
			c.addToCounts(e, -1)
			e.connection = Broken
			c.addToCounts(e, 1)
		}
	}
	c.updatePhase()
}

func (c *Core[T]) updatePhase() {
	n := c.counts
	switch {
	case !c.config.ReportEmptied || n.ejected+n.unproven == 0 || n.sound > 0:
		c.phase = Usable
	case n.connected+n.reconnecting == 0: // The phase stays the same.
	case c.phase == Usable:
		c.phase = Emptied
		for _, e := range c.doubted {
			c.startEpoch(e)
		}
	}
	if c.phase == Emptied && n.connected > 0 && n.connected == n.reconnected {
		c.phase = HalfOpen
	}
	c.updateVisible()
}

// updateVisible updates which endpoints the child policy sees as ejected. While no endpoint is
// sound, the child sees no ejections, even in the phase Usable. Otherwise, calls would fail between
// an ejection and the time at which Core learns that the last connection is lost.
func (c *Core[T]) updateVisible() {
	if shows := !c.config.ReportEmptied || c.counts.sound > 0; shows != c.showsEjections {
		c.showsEjections = shows
		c.changed = append(c.changed, c.doubted...)
	}
	if len(c.changed) == 0 {
		return
	}
	slices.SortFunc(c.changed, func(a, b *Endpoint[T]) int { return cmp.Compare(a.index, b.index) })
	for _, e := range c.changed {
		c.visited++
		if visible := e.ejected && c.showsEjections; visible != e.visiblyEjected && e.present {
			e.visiblyEjected = visible
			c.outcome.Changes = append(c.outcome.Changes, Change[T]{e, visible})
		}
	}
	clear(c.changed)
	c.changed = c.changed[:0]
}
