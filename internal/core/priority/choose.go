package priority

import "slices"

// choosePriority chooses the priority in use. It uses A56's choice unless that child is poor (see
// orderOfLastResorts). When it returns, one of these holds:
//
//   - The choice is complete, and its priority is in use and published.
//   - The choice has created a child, and waitingFor is set. Updated then starts the choice again,
//     so that it considers what the child reported during its update.
//
// Another call does nothing unless the state of a child or a timer has changed.
func (c *Core) choosePriority() {
	// If priority list is empty, report TRANSIENT_FAILURE.
	if len(c.config.Priorities) == 0 {
		c.publish(nil)
		return
	}
	chosen, made := c.choiceOfA56()
	if made {
		return
	}
	if c.comesLate(chosen) {
		c.tier(chosen).late = true
		c.choosePriority()
		return
	}
	row, priority := c.orderOfLastResorts(chosen)
	if row != rowA56 && c.lookBelow(chosen, row, priority) {
		return
	}
	state := c.stateOf(priority)
	c.setCurrentPriority(priority, row == rowA56 && (state == Ready || state == Idle) || row == rowGood)
}

// choiceOfA56 is ChoosePriority in A56's pseudo-code ("Algorithm for Choosing a Priority"), in the
// same order and with the same names. The failback delay and Config.FastFailover are additions. If
// made is true, it has created a child and chosen nothing, and must be called again after that
// child's update.
func (c *Core) choiceOfA56() (chosen int, made bool) {
	// aside is the first candidate that standsAside has skipped. lazy means that a skipped priority
	// may still connect.
	aside, lazy := none, false
	// Look for a priority that is READY or IDLE, creating children as needed.
	for priority, childName := range c.config.Priorities {
		child, ok := c.children[childName]
		if !ok && (lazy || c.heldBack(priority)) {
			continue
		}
		if !ok {
			// The child does not exist: create it.
			c.makeChild(childName).standby = c.passed(priority)
			return none, true
		}
		// The child exists: reactivate it if needed.
		c.maybeReactivate(child)
		// This check and the next two are not in the pseudo-code.
		if c.failbackDelayed(priority, child) {
			continue
		}
		if c.standsAside(priority) && child.connectivityState() != Ready && !child.poor() {
			c.wake(child)
			lazy = lazy || child.hasTime()
			if aside == none && child.hasTime() && !c.passes(priority) {
				aside = priority
			}
			continue
		}
		if !child.poor() && c.passes(priority) {
			c.wake(child)
			lazy = lazy || c.candidates[childName] // it may still connect
			continue
		}
		// If the child is READY or IDLE, use it. If its failover timer is pending, use it.
		if child.connectivityState() == Ready || child.hasTime() {
			return c.asideOf(aside, priority), false
		}
	}
	// No priority is READY or IDLE or has a pending failover timer: look for a priority in
	// CONNECTING.
	for priority, childName := range c.config.Priorities {
		if c.children[childName].connectivityState() == Connecting {
			return priority, false
		}
	}
	// No priority is in CONNECTING: delegate to the last child.
	return len(c.config.Priorities) - 1, false
}

func (c *Core) makeChild(name string) *child {
	child := c.createChild(name)
	c.children[name] = child
	c.update(child)
	c.waitingFor = child
	return child
}

// setCurrentPriority is SetCurrentPriority in A56's pseudo-code. Standbys are an addition.
func (c *Core) setCurrentPriority(priority int, deactivateLowerPriorities bool) {
	c.noteFlaps(priority)
	c.currentPriority = priority
	c.noCandidate(c.children[c.config.Priorities[priority]])
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

// publish adds the action that publishes the state of a child, unless that state is already
// published. child is nil if there are no priorities.
func (c *Core) publish(child *child) {
	tried := c.onTrial(child)
	if child == c.published && !c.stale && slices.Equal(tried, c.tried) {
		return
	}
	c.published, c.tried, c.stale = child, tried, false
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
