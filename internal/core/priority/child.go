package priority

import (
	"slices"
	"time"
)

type child struct {
	name string

	reported        State
	tier            Tier
	isBelowMinReady bool // too small a share of the child is READY (see checkMinReady)
	enoughIfProven  bool // the READY share, including unproven endpoints, would be large enough
	wasPoor         bool // the child is reconnecting, and was poor or not Usable when it lost its connections
	// lastWellReport is the value of Core.reportCount at the child's last good or small report.
	lastWellReport int
	// seenReady means that the child was READY after its last failure.
	seenReady bool
	// seenReadyOrIdle means that the child was READY or IDLE after its last failure. An expired
	// failover timer counts as a failure.
	seenReadyOrIdle bool
	// standby means that calls could already use another child when this one was created.
	standby          bool
	isLateCandidate  bool // the child is skipped like a candidate (see becomesLateCandidate)
	singleConnection bool // the child has at most one connection

	// refused means that the child has refused its last update while it was neither READY nor IDLE,
	// and has not reported since. The child then counts as TRANSIENT_FAILURE, but its timers and the
	// field reported do not change.
	refused bool

	// failover is the state of the failover timer. After the timer has fired, the child counts as
	// TRANSIENT_FAILURE until it reports a state other than CONNECTING.
	failover        timer
	failoverTimeout time.Duration

	deactivation timer
	removed      bool // the deactivation timer runs because the child is no longer configured

	// failback is the state of the failback timer, which runs while a good child waits to take over
	// from a lower priority. After the timer has fired, the child may take over.
	failback           timer
	skipsFailbackDelay bool // the child may take over without a failback delay
	exitIdleSent       bool // ExitIdle was returned for the child after its last report

	wasGoodInUse bool  // the child was good while it was in use
	flaps        int   // number of failures since the child was last steady (see flap)
	steady       timer // runs while the child is in use after a failure; when it fires, the child is steady

	headStart timer // runs while the child is the first near group and neither READY nor IDLE
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

// trackReport records a child's report and updates its timers (A56, "Child Connectivity State
// Tracking").
func (c *Core) trackReport(child *child, state State, tier Tier) {
	before, refused, wasPoor := child.reported, child.refused, child.isSmall() || child.isFailing() || child.wasPoor
	if c.reportCount++; child.isGood() || child.isSmall() {
		child.lastWellReport = c.reportCount
	}
	child.reported, child.refused = state, false
	child.tier = tier
	child.exitIdleSent = false
	c.checkMinReady(child)
	c.updateHeadStart(child)
	if !child.isGood() {
		c.failWhileWaiting(child)
	}
	// The child may report that it is not Usable only after it has lost its connections.
	emptied := state == Connecting && child.seenReady && tier.Condition != Usable
	child.wasPoor = (wasPoor || emptied) && (state == Connecting || state == Idle)
	switch state {
	case Ready, Idle:
		child.seenReadyOrIdle = true
		if state == Ready {
			child.seenReady = true
			c.removeCandidate(child)
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
	if child == c.published && (refused || child.failover != fired) || slices.Contains(c.trialChildren, child.name) {
		c.mustPublish = true
	}
}

func (c *Core) refuse(child *child) {
	child.refused = true
	if child == c.published {
		c.mustPublish = true
	}
}

func (c *Core) expire(child *child) {
	child.failover = fired
	child.seenReadyOrIdle, child.seenReady, child.wasPoor = false, false, false
	if child == c.published && !child.refused {
		c.mustPublish = true
	}
}

func (c *Core) createChild(name string) *child {
	child := &child{name: name, reported: Connecting, singleConnection: slices.Contains(c.config.SingleConnection, name)}
	c.addAction(Create, name)
	c.startFailover(child)
	c.updateHeadStart(child)
	return child
}

// update adds the Update action of a child. If the child refused its previous update, this refusal
// no longer counts.
func (c *Core) update(child *child) {
	child.refused = false
	c.addAction(Update, child.name)
}

func (c *Core) destroy(child *child) {
	c.stopFailover(child)
	c.maybeReactivate(child)
	c.stopFailback(child)
	c.stopSteady(child)
	c.stopHeadStart(child)
	delete(c.children, child.name)
	c.addAction(Destroy, child.name)
}

func (c *Core) startFailover(child *child) {
	child.failover = running
	child.failoverTimeout = c.config.FailoverTimeout
	c.addTimer(StartFailover, child, child.failoverTimeout)
}

func (c *Core) stopFailover(child *child) {
	if child.failover == running {
		c.addAction(StopFailover, child.name)
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
	c.addTimer(StartDeactivation, child, retention)
}

func (c *Core) maybeReactivate(child *child) {
	if child.deactivation == running {
		c.addAction(StopDeactivation, child.name)
	}
	child.deactivation = stopped
}
