package priority

import "time"

type child struct {
	name string

	reported State
	// seenReadyOrIdle means that the child was READY or IDLE after its last failure. An expired
	// failover timer counts as a failure.
	seenReadyOrIdle bool
	wasReady        bool // at any time

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

	exitIdleSent bool // ExitIdle was returned for the child after its last report
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

// hasTime reports whether calls may wait for a child to become READY: it is IDLE, or it is
// connecting and its failover timer is running.
func (ch *child) hasTime() bool {
	return ch.connectivityState() == Idle || ch.connectivityState() == Connecting && ch.failoverTimerPending()
}

// trackReport records a child's report and updates its timers (A56, "Child Connectivity State
// Tracking").
func (c *Core) trackReport(child *child, state State) {
	before, refused := child.reported, child.refused
	child.reported, child.refused, child.exitIdleSent = state, false, false
	switch state {
	case Ready, Idle:
		child.seenReadyOrIdle = true
		child.wasReady = child.wasReady || state == Ready
		c.stopFailover(child)
	case TransientFailure:
		child.seenReadyOrIdle = false
		c.stopFailover(child)
	case Connecting:
		if before != Connecting && child.seenReadyOrIdle {
			c.startFailover(child)
		}
	}
	if child == c.published && (refused || child.failover != fired) {
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
	child.seenReadyOrIdle = false
	if child == c.published && !child.refused {
		c.mustPublish = true
	}
}

func (c *Core) createChild(name string) *child {
	child := &child{name: name, reported: Connecting}
	c.addAction(Create, name)
	c.startFailover(child)
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
