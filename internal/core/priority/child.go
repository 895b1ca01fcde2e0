package priority

import (
	"slices"
	"time"
)

type child struct {
	name string

	reported State
	tier     Tier
	below    bool // too small a share of the child is READY (see weigh)
	atMark   bool
	lost     bool // the child reconnects, and was poor or not Usable when it lost its connections
	// wellUntil orders children by their last good or small report: it is the value of Core.reports
	// after that report.
	wellUntil int
	// seenReady means that the child was READY after its last failure.
	seenReady bool
	// seenReadyOrIdle means that the child was READY or IDLE after its last failure. An expired
	// failover timer counts as a failure.
	seenReadyOrIdle bool
	// standby means that calls could already use another child when this one was created.
	standby bool
	late    bool
	single  bool

	// refused means that the child has refused its last update while it was neither READY nor IDLE,
	// and has not reported since. It then counts as TRANSIENT_FAILURE, but the field reported and the
	// timers stay the same.
	refused bool

	// failover is fired from the timer's expiry until the child reports a state other than CONNECTING.
	// In the meantime, the child counts as TRANSIENT_FAILURE.
	failover timer
	given    time.Duration

	deactivation timer
	removed      bool // the deactivation timer runs because the child is no longer configured

	// failback runs while a READY child waits to take over from a lower priority. It is fired when
	// the wait is over.
	failback timer
	atOnce   bool
	woken    bool

	served bool
	flaps  int   // number of failures since the child was last steady (see flap)
	steady timer // runs while the child is in use after a failure; when it fires, the child is steady

	headStart timer // runs while the child is a first near group that is neither READY nor IDLE
}

// connectivityState is connectivity_state() in A56's pseudo-code.
func (ch *child) connectivityState() State {
	if ch.refused || ch.failover == fired {
		return TransientFailure
	}
	return ch.reported
}

// failoverTimerPending is FailoverTimerPending() in A56's pseudo-code.
func (ch *child) failoverTimerPending() bool { return ch.failover == running && !ch.refused }

// track records a child's report and updates its timers (A56, "Child Connectivity State Tracking").
func (c *Core) track(child *child, state State, tier Tier) {
	before, refused, lost := child.reported, child.refused, child.small() || child.failing() || child.lost
	if c.reports++; child.good() || child.small() {
		child.wellUntil = c.reports
	}
	child.reported, child.refused = state, false
	child.tier = tier
	child.woken = false
	c.weigh(child)
	c.race(child)
	if !child.good() {
		c.failWhileWaiting(child)
	}
	// The report that the child is not Usable may arrive only after the child has lost its
	// connections.
	emptied := state == Connecting && child.seenReady && tier.Condition != Usable
	child.lost = (lost || emptied) && (state == Connecting || state == Idle)
	switch state {
	case Ready, Idle:
		child.seenReadyOrIdle = true
		if state == Ready {
			child.seenReady = true
			c.noCandidate(child)
		}
		c.stopFailover(child)
	case TransientFailure:
		child.seenReadyOrIdle, child.seenReady = false, false
		c.stopFailover(child)
	case Connecting:
		if before != Connecting && child.seenReadyOrIdle {
			c.startFailover(child)
		}
	}
	if child == c.published && (refused || child.failover != fired) || slices.Contains(c.tried, child.name) {
		c.stale = true
	}
}

func (c *Core) refuse(child *child) {
	child.refused = true
	if child == c.published {
		c.stale = true
	}
}

func (c *Core) expire(child *child) {
	child.failover = fired
	child.seenReadyOrIdle, child.seenReady, child.lost = false, false, false
	if child == c.published && !child.refused {
		c.stale = true
	}
}

func (c *Core) createChild(name string) *child {
	child := &child{name: name, reported: Connecting, single: slices.Contains(c.config.Single, name)}
	c.do(Create, name)
	c.startFailover(child)
	c.race(child)
	return child
}

// update adds the Update action of a child. It forgets that the child refused the previous update.
func (c *Core) update(child *child) {
	child.refused = false
	c.do(Update, child.name)
}

func (c *Core) destroy(child *child) {
	c.stopFailover(child)
	c.maybeReactivate(child)
	c.stopFailback(child)
	c.stopSteady(child)
	c.stopHeadStart(child)
	delete(c.children, child.name)
	c.do(Destroy, child.name)
}

func (c *Core) startFailover(child *child) {
	child.failover = running
	child.given = c.config.FailoverTimeout
	c.start(StartFailover, child, child.given)
}

func (c *Core) stopFailover(child *child) {
	if child.failover == running {
		c.do(StopFailover, child.name)
	}
	child.failover = stopped
}

// deactivate starts the timer after which a child is destroyed (A56, "Child Lifetime Management").
// A timer that is already running continues, unless the child has just been removed from the
// configuration and removed children are kept for a shorter time.
func (c *Core) deactivate(child *child, removed bool) {
	retention := c.config.ChildRetention
	if removed {
		retention = c.config.RemovedChildRetention
	}
	shorter := removed && !child.removed && (retention < c.config.ChildRetention || retention == 0)
	child.removed = removed
	if child.deactivation == running {
		if !shorter {
			return
		}
		c.maybeReactivate(child)
	}
	if retention == 0 {
		c.destroy(child)
		return
	}
	child.deactivation = running
	c.start(StartDeactivation, child, retention)
}

func (c *Core) maybeReactivate(child *child) {
	if child.deactivation == running {
		c.do(StopDeactivation, child.name)
	}
	child.deactivation = stopped
}
