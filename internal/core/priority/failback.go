package priority

// failbackDelayed tells whether a child may not be used yet although the policy in
// A56 would look no further: the priority in use before this choice is a lower one
// that is good, and the child has not been good for as long as Config.FailbackDelay and
// its part of Config.FailbackJitter. A child that is CONNECTING is no exception: one that
// flaps does not take the calls over from one that is READY. One that is IDLE is told to
// connect, since otherwise no call would ever make it.
//
// There is no delay in the first choice, and after an update by which the child in use
// is no priority any more: none was in use before.
func (c *Core) failbackDelayed(priority int, child *child) bool {
	if !c.protected(priority) || child.failback == fired || child.atOnce {
		return false
	}
	if child.good() && child.failback == stopped {
		child.failback = running
		c.actions = append(c.actions, Action{Kind: StartFailback, Child: child.name, After: c.failbackDelay(child), Jitter: c.config.FailbackJitter})
	}
	c.wake(child)
	return true
}

// protected returns whether the priority in use is a good one, lower than the given one, which
// the failback delay protects.
func (c *Core) protected(priority int) bool {
	return c.config.FailbackDelay+c.config.FailbackJitter > 0 && c.currentPriority > priority && c.tier(c.currentPriority).good()
}

func (c *Core) stopFailback(child *child) {
	if child.failback == running {
		c.do(StopFailback, child.name)
	}
	child.failback, child.atOnce = stopped, false
}

// endFailback stops the failback timers of the priority that is now in use and of
// all lower ones: they have nothing to wait for. How often the lower ones have failed
// is forgotten.
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
