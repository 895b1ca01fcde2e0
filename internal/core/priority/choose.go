package priority

import "slices"

// choosePriority chooses the priority in use. When it returns, one of these conditions holds:
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
	if c.config.Overflow {
		chosen = c.preferReady(chosen)
	}
	state := c.stateOf(chosen)
	c.setCurrentPriority(chosen, state == Ready || state == Idle)
}

// choiceOfA56 is ChoosePriority in A56's pseudo-code ("Algorithm for Choosing a Priority"), in the
// same order and with the same names. If created is true, it has created a child instead of choosing
// a priority, and must be called again after the child's update.
func (c *Core) choiceOfA56() (chosen int, created bool) {
	// Look for a priority that is READY or IDLE, creating children as needed.
	for priority, childName := range c.config.Priorities {
		child, ok := c.children[childName]
		if !ok {
			// The child does not exist: create it.
			c.makeChild(childName)
			return none, true
		}
		// The child exists: reactivate it if needed.
		c.maybeReactivate(child)
		// If the child is READY or IDLE, use it. If its failover timer is pending, use it.
		if child.connectivityState() == Ready || child.hasTime() {
			return priority, false
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

// preferReady returns the highest READY priority, so that calls do not wait for a higher one that
// reconnects, is new or is IDLE. No call makes an IDLE one connect then, so we do. Calls that wait
// already for a first connection go on waiting: a lower priority that merely connects faster must
// not get a client's first calls.
func (c *Core) preferReady(chosen int) int {
	child := c.childAt(chosen)
	if child == c.published && !child.wasReady && child.failoverTimerPending() {
		return chosen
	}
	highest := slices.IndexFunc(c.config.Priorities, func(name string) bool {
		child, ok := c.children[name]
		return ok && child.connectivityState() == Ready
	})
	if highest == none {
		return chosen
	}
	for _, name := range c.config.Priorities[:highest] {
		if child, ok := c.children[name]; ok {
			c.exitIdle(child)
		}
	}
	c.maybeReactivate(c.childAt(highest))
	return highest
}

func (c *Core) childAt(priority int) *child { return c.children[c.config.Priorities[priority]] }

func (c *Core) stateOf(priority int) State { return c.childAt(priority).connectivityState() }

func (c *Core) makeChild(name string) {
	child := c.createChild(name)
	c.children[name] = child
	c.update(child)
	c.waitingFor = child
}

// setCurrentPriority is SetCurrentPriority in A56's pseudo-code. Standbys are an addition.
func (c *Core) setCurrentPriority(priority int, deactivateLowerPriorities bool) {
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
	// Use this child's picker.
	c.publish(c.childAt(priority))
	c.askForStandbys(priority)
}

// publish adds the action that publishes the state of a child, unless that state is already
// published. child is nil if there are no priorities.
func (c *Core) publish(child *child) {
	if child == c.published && !c.mustPublish {
		return
	}
	c.published, c.mustPublish = child, false
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
