package priority

import (
	"slices"
	"time"
)

// child is what the core knows of a child that exists.
type child struct {
	name string

	// reported is the state last reported, CONNECTING before the first report.
	reported State
	tier     Tier // what it said of its endpoints with that
	below    bool // too little of it is READY
	atMark   bool // enough of it would be, if what is unproven counted
	lost     bool // it was poor at its last READY report, or emptied since, and is IDLE or connecting
	// wellUntil is when it was last good or small, in reports of all children.
	wellUntil int
	// seenReady: reported READY more recently than TRANSIENT_FAILURE.
	seenReady bool
	// seenReadyOrIdle: reported READY or IDLE more recently than TRANSIENT_FAILURE,
	// which an expired failover timer counts as.
	seenReadyOrIdle bool
	// standby: it was made while another one was READY that could take the calls.
	standby bool
	late    bool // it is a candidate although calls would wait for it; see comesLate
	single  bool // it can hold one connection only

	// refused: it returned an error from its last update, and has reported nothing
	// since, neither READY nor IDLE before. So long its state is TRANSIENT_FAILURE. What
	// it reported, and its timers, are what they would be without the error.
	refused bool

	// failover is fired from the timer's expiry until the child reports READY, IDLE
	// or TRANSIENT_FAILURE: so long its state is TRANSIENT_FAILURE, whatever
	// CONNECTING it reports.
	failover timer
	given    time.Duration // how long the failover timer last ran or runs

	deactivation timer // running while the child is deactivated
	removed      bool  // deactivated because it is no longer configured

	// failback is running from READY on while the child waits to take over from a
	// lower priority, and fired once it has waited long enough.
	failback timer
	atOnce   bool // it need not wait: it was good when an update put it above the one in use
	woken    bool // told to leave IDLE since its last report

	served bool  // it has been good since it came into use
	flaps  int   // how often it has failed since it was last steady
	steady timer // running while it is in use after such a failure

	headStart timer // of the first of several near groups, running while it is waited for
}

// connectivityState is the pseudo-code's connectivity_state().
func (ch *child) connectivityState() State {
	if ch.refused || ch.failover == fired {
		return TransientFailure
	}
	return ch.reported
}

// failoverTimerPending is the pseudo-code's FailoverTimerPending().
func (ch *child) failoverTimerPending() bool { return ch.failover == running && !ch.refused }

// track keeps the state that a child reported, with its timers (A56, "Child
// Connectivity State Tracking").
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
	emptied := state == Connecting && child.seenReady && tier.Condition != Usable // which may be heard of late
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

// refuse treats the child as if it had reported TRANSIENT_FAILURE, until it reports or
// is updated again.
func (c *Core) refuse(child *child) {
	child.refused = true
	if child == c.published {
		c.stale = true
	}
}

// expire treats the child as if it had reported TRANSIENT_FAILURE.
func (c *Core) expire(child *child) {
	child.failover = fired
	child.seenReadyOrIdle, child.seenReady, child.lost = false, false, false
	if child == c.published && !child.refused {
		c.stale = true
	}
}

// createChild creates a child, whose failover timer runs from the start.
func (c *Core) createChild(name string) *child {
	child := &child{name: name, reported: Connecting, single: slices.Contains(c.config.Single, name)}
	c.do(Create, name)
	c.startFailover(child)
	c.race(child)
	return child
}

// update updates a child. An error from an update before this one is not held against
// it any more.
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

// deactivate starts the timer after which the child is destroyed; one that runs
// already runs on (A56, "Child Lifetime Management"), unless the child is now
// removed and removed children are kept for a shorter time, or not at all.
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

// maybeReactivate stops the timer after which the child would be destroyed.
func (c *Core) maybeReactivate(child *child) {
	if child.deactivation == running {
		c.do(StopDeactivation, child.name)
	}
	child.deactivation = stopped
}
