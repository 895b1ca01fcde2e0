package priority

import "slices"

// choosePriority chooses the priority in use. It uses A56's choice unless that child is poor (see
// orderOfLastResorts). When it returns, one of these conditions holds:
//
//   - The choice is complete, and its priority is in use and published.
//   - The choice has created a child, and waitingFor is set. After the child's update, Updated
//     starts the choice again, because the child may have reported a new state.
//
// A second call has no effect unless the state of a child or of a timer has changed.
func (c *Core) choosePriority() {
	// If priority list is empty, report TRANSIENT_FAILURE.
	if len(c.config.Priorities) == 0 {
		c.publish(nil)
		return
	}
	chosen, created := c.choiceOfA56()
	if created {
		return
	}
	if c.becomesLateCandidate(chosen) {
		c.childAt(chosen).isLateCandidate = true
		c.choosePriority()
		return
	}
	row, priority := c.orderOfLastResorts(chosen)
	if row != rowA56 && c.connectBelow(chosen, row, priority) {
		return
	}
	state := c.stateOf(priority)
	c.setCurrentPriority(priority, row == rowA56 && (state == Ready || state == Idle) || row == rowGood)
}

// choiceOfA56 is ChoosePriority in A56's pseudo-code ("Algorithm for Choosing a Priority"), in the
// same order and with the same names. The failback delay and Config.FastFailover are additions. If
// created is true, it has created a child instead of choosing a priority, and must be called again
// after the child's update.
func (c *Core) choiceOfA56() (chosen int, created bool) {
	// skippedCandidate is the first candidate that was skipped. skippedMayConnect means that a skipped
	// priority may still become READY, so that no further child is created.
	skippedCandidate, skippedMayConnect := none, false
	// Look for a priority that is READY or IDLE, creating children as needed.
	for priority, childName := range c.config.Priorities {
		child, ok := c.children[childName]
		if !ok && (skippedMayConnect || c.isCreationDelayed(priority)) {
			continue
		}
		if !ok {
			// The child does not exist: create it.
			c.makeChild(childName).standby = c.isBelowSkipped(priority)
			return none, true
		}
		// The child exists: reactivate it if needed.
		c.maybeReactivate(child)
		// This check and the next two are not in the pseudo-code.
		if c.isFailbackDelayed(priority, child) {
			continue
		}
		if c.isSkippedCandidate(priority) && child.connectivityState() != Ready && !child.isPoor() {
			c.exitIdle(child)
			skippedMayConnect = skippedMayConnect || child.hasTime()
			if skippedCandidate == none && child.hasTime() && !c.isSkipped(priority) {
				skippedCandidate = priority
			}
			continue
		}
		if !child.isPoor() && c.isSkipped(priority) {
			c.exitIdle(child)
			skippedMayConnect = skippedMayConnect || c.candidates[childName]
			continue
		}
		// If the child is READY or IDLE, use it. If its failover timer is pending, use it.
		if child.connectivityState() == Ready || child.hasTime() {
			return c.preferCandidate(skippedCandidate, priority), false
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
	c.removeCandidate(c.children[c.config.Priorities[priority]])
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
	trials := c.findTrials(child)
	if child == c.published && !c.mustPublish && slices.Equal(trials, c.trialChildren) {
		return
	}
	c.published, c.trialChildren, c.mustPublish = child, trials, false
	switch {
	case child == nil:
		c.addAction(PublishEmpty, "")
	case child.refused:
		c.addAction(PublishRefused, child.name)
	case child.failover == fired:
		c.addTimer(PublishTimeout, child, child.failoverTimeout)
	default:
		c.addAction(Publish, child.name)
	}
}
