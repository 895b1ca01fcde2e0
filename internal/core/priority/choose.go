package priority

import "slices"

// choose is called at the end of every event. During an update of the policy or the first update of
// a child, it does nothing, and leaves it to EndUpdate or Updated. Calling it twice in a row is
// harmless.
func (c *Core) choose() []Action {
	switch {
	case c.updating || c.creating != nil:
	case len(c.config.Priorities) == 0:
		// If priority list is empty, report TRANSIENT_FAILURE.
		c.publish(nil)
	default:
		chosen := c.choosePriority()
		if chosen == none {
			break
		}
		if c.config.Overflow {
			chosen = c.preferReady(chosen)
		}
		state := c.stateOf(chosen)
		c.setCurrentPriority(chosen, state == Ready || state == Idle)
	}
	return c.takeActions()
}

// choosePriority is ChoosePriority from A56's pseudo-code ("Algorithm for Choosing a Priority"),
// with the same steps and names in the same order. It returns none if it had to create a child.
func (c *Core) choosePriority() int {
	// Look for a priority that is READY or IDLE, creating children as needed.
	for priority, childName := range c.config.Priorities {
		child, ok := c.children[childName]
		if !ok {
			// The child does not exist: create it.
			c.create(childName)
			return none
		}
		// The child exists: reactivate it if needed.
		c.maybeReactivate(child)
		// If the child is READY or IDLE, use it. If its failover timer is pending, use it.
		if state := child.connectivityState(); state == Ready || state == Idle || child.failoverTimerPending() {
			return priority
		}
	}
	// No priority is READY or IDLE or has a pending failover timer: look for a priority in
	// CONNECTING.
	for priority, childName := range c.config.Priorities {
		if c.children[childName].connectivityState() == Connecting {
			return priority
		}
	}
	// No priority is in CONNECTING: delegate to the last child.
	return len(c.config.Priorities) - 1
}

// preferReady returns the highest priority that's READY. With overflow, calls don't have to wait
// for a higher one that's new, IDLE or reconnecting. An IDLE priority above it won't see any calls
// that would make it connect, so we do that here. We make one exception: if calls are still waiting
// for their very first connection, we don't give them to a lower priority that happens to connect
// faster.
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

// setCurrentPriority is SetCurrentPriority from A56's pseudo-code, plus standbys.
func (c *Core) setCurrentPriority(priority int, deactivateLowerPriorities bool) {
	c.currentPriority = priority
	// Deactivate lower priorities if needed.
	if deactivateLowerPriorities {
		for p := c.lastStandby(priority) + 1; p < len(c.config.Priorities); p++ {
			if child, ok := c.children[c.config.Priorities[p]]; ok {
				c.deactivate(child, deactivated)
			}
		}
	}
	c.keepStandbys(priority)
	// Use this child's picker.
	c.publish(c.childAt(priority))
	if c.missingStandby(priority) != "" && !c.standbyRequested {
		c.standbyRequested = true
		c.add(CallStandbyDue, "", 0)
	}
}

func (c *Core) publish(child *child) {
	as := child.publication()
	if child == c.published && as == c.publishedAs {
		return
	}
	c.published, c.publishedAs = child, as
	switch as {
	case PublishEmpty:
		c.add(PublishEmpty, "", 0)
	case PublishTimeout:
		c.add(PublishTimeout, child.name, child.failoverTimeout)
	default:
		c.add(as, child.name, 0)
	}
}
