package priority

import (
	"slices"
	"time"
)

// child is the core's state of an existing child.
type child struct {
	name string

	// reported is the last reported state. It is CONNECTING before the first report.
	reported State
	tier     Tier
	below    bool // less than the required share is READY
	atMark   bool // enough would be READY if unproven weight counted
	lost     bool // the child is IDLE or CONNECTING; it was poor before that, or has been emptied since
	// wellUntil is the number of reports (Core.reports) up to which the child was good or small.
	wellUntil int
	// seenReady means that the child was READY after its last failure.
	seenReady bool
	// seenReadyOrIdle means that the child was READY or IDLE after its last failure. A failover
	// timer that fires counts as a failure.
	seenReadyOrIdle bool
	// standby means that another child could take calls when this one was created.
	standby bool
	late    bool // a candidate without an update, because calls would have waited for it; see comesLate
	single  bool // has at most one connection

	// refused means that the child's last update returned an error, that the child was neither
	// READY nor IDLE, and that it has not reported since. Its state is then TRANSIENT_FAILURE. The
	// error does not affect the reported field or the timers.
	refused bool

	// failover is fired from the timer's expiry until the child reports a state other than
	// CONNECTING. Until then, the child's state counts as TRANSIENT_FAILURE.
	failover timer
	given    time.Duration

	deactivation timer // runs while the child is deactivated
	removed      bool  // deactivated because it is no longer configured

	// failback runs while the READY child waits to take over from a lower priority. It is fired
	// when the child has waited long enough.
	failback timer
	atOnce   bool // there is no failback delay, because the child was already good when an update put it above the child in use
	woken    bool // ExitIdle has been called since the last report

	served bool  // the child has been good while in use
	flaps  int   // number of failures since it was last steady
	steady timer // runs while the child is in use again after a failure

	headStart timer // runs while the child is a first near group and neither READY nor IDLE
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

// track records a child's report and updates the child's timers (A56, "Child Connectivity State
// Tracking").
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
	emptied := state == Connecting && child.seenReady && tier.Condition != Usable // this condition may be reported only after the connections are lost
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

// refuse makes the child count as TRANSIENT_FAILURE until it reports or is updated again.
func (c *Core) refuse(child *child) {
	child.refused = true
	if child == c.published {
		c.stale = true
	}
}

// expire makes the child count as TRANSIENT_FAILURE because its failover timer fired.
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

// update makes the shell update a child. An error of its previous update no longer counts.
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

// deactivate starts the timer after which the child is destroyed. If the timer is running, it
// continues (A56, "Child Lifetime Management"). It is restarted only if the child has been removed
// from the configuration in the meantime, and removed children are kept for a shorter time.
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
