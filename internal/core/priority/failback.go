package priority

// isFailbackDelayed reports whether a child may not be used yet because of the failback delay. This
// is the case if the priority in use is lower and good, and the child has not yet been good for
// Config.FailbackDelay plus a random part of Config.FailbackJitter.
//
// The delay also applies to a CONNECTING child. Otherwise, a flapping child would take calls from a
// READY child. An IDLE child is made to connect, because no call reaches it. If no priority is in
// use, there is no delay.
func (c *Core) isFailbackDelayed(priority int, child *child) bool {
	if !c.isProtectedFrom(priority) || child.failback == fired || child.skipsFailbackDelay {
		return false
	}
	if child.isGood() && child.failback == stopped {
		child.failback = running
		c.actions = append(c.actions, Action{Kind: StartFailback, Child: child.name, After: c.failbackDelay(child), Jitter: c.config.FailbackJitter})
	}
	c.exitIdle(child)
	return true
}

// isProtectedFrom reports whether the failback delay protects the priority in use from being
// replaced by the given priority.
func (c *Core) isProtectedFrom(priority int) bool {
	return c.config.FailbackDelay+c.config.FailbackJitter > 0 && c.currentPriority > priority && c.childAt(c.currentPriority).isGood()
}

func (c *Core) stopFailback(child *child) {
	if child.failback == running {
		c.addAction(StopFailback, child.name)
	}
	child.failback, child.skipsFailbackDelay = stopped, false
}

// endFailback stops the failback timers of the given priority and of all lower priorities. It also
// resets the number of flaps of the lower priorities.
func (c *Core) endFailback(priority int) {
	for p, childName := range c.config.Priorities {
		child, ok := c.children[childName]
		if !ok || p < priority {
			continue
		}
		c.stopFailback(child)
		if p > priority {
			c.forgetFlaps(child)
		}
	}
}
