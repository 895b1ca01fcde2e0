package priority

import "slices"

// choosePriority is ChoosePriority of A56's pseudo-code ("Algorithm for Choosing a
// Priority"), in its order and with its names, and with the failback delay. Run
// again on the same state of the children and their timers it does nothing.
//
// What child.Update() makes a child report counts in the lines below it. So the choice
// stops there, and begins again once the child has been updated; see Updated.
func (c *Core) choosePriority() {
	// If priority list is empty, report TRANSIENT_FAILURE.
	if len(c.config.Priorities) == 0 {
		c.publish(nil)
		return
	}
	// Not in the pseudo-code: the highest that is poor, and whether one was passed.
	poor, passed := none, false
	// Look for a priority that is READY or IDLE, creating children as needed.
	for priority, childName := range c.config.Priorities {
		child, ok := c.children[childName]
		if !ok {
			// The child does not exist: create it.
			c.makeChild(childName).standby = passed
			return
		}
		// The child exists: reactivate it if needed.
		c.maybeReactivate(child)
		// Not in the pseudo-code: what is READY below may have to stay in use, or to
		// come into use.
		if child.poor() && poor == none {
			poor = priority
		}
		if child.poor() || c.failbackDelayed(priority, child) || c.outdone(priority, child) {
			continue
		}
		if c.passes(priority, child, passed) {
			passed = true
			continue
		}
		if poor != none && c.waitsFor(child) {
			break
		}
		// If the child is READY or IDLE, use it.
		if state := child.connectivityState(); state == Ready || state == Idle {
			c.setCurrentPriority(priority, true)
			return
		}
		// If the child's failover timer is pending, use it.
		if child.failoverTimerPending() {
			c.setCurrentPriority(priority, false)
			return
		}
	}
	if poor != none {
		c.setCurrentPriority(poor, false)
		return
	}
	// There is none, nor one whose failover timer is pending: look for one in
	// CONNECTING.
	for priority, childName := range c.config.Priorities {
		child := c.children[childName]
		if child.connectivityState() == Connecting {
			c.setCurrentPriority(priority, false)
			return
		}
	}
	// There is none in CONNECTING: delegate to the last child.
	c.setCurrentPriority(len(c.config.Priorities)-1, false)
}

// makeChild creates a child, and gives it its first update, for which the choice waits.
func (c *Core) makeChild(name string) *child {
	child := c.createChild(name)
	c.children[name] = child
	c.update(child)
	c.waitingFor = child
	return child
}

// setCurrentPriority is SetCurrentPriority of A56's pseudo-code, with the standbys.
func (c *Core) setCurrentPriority(priority int, deactivateLowerPriorities bool) {
	c.noteFlaps(priority)
	c.currentPriority = priority
	// Deactivate lower priorities if needed.
	if deactivateLowerPriorities {
		for p := c.lastStandby(priority) + 1; p < len(c.config.Priorities); p++ {
			if child, ok := c.children[c.config.Priorities[p]]; ok {
				c.deactivate(child, false)
			}
		}
	}
	c.keepStandbys(priority)
	c.endFailback(priority)
	// Use this child's picker.
	c.publish(c.children[c.config.Priorities[priority]])
	c.askForStandbys(priority)
}

// publish publishes what child has, or that there are no priorities where it is nil,
// unless that is what is published already.
func (c *Core) publish(child *child) {
	probed := c.halfOpen(child)
	if child == c.published && !c.stale && slices.Equal(probed, c.probed) {
		return
	}
	c.published, c.probed, c.stale = child, probed, false
	switch {
	case child == nil:
		c.do(PublishEmpty, "")
	case child.refused:
		c.do(PublishRefused, child.name)
	case child.failover == fired:
		c.start(PublishTimeout, child, child.given)
	default:
		c.do(Publish, child.name)
	}
}
