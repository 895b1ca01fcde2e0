package priority

// failbackDelayed reports whether a child may not be used yet because of the failback delay. This
// is so if the priority in use is lower and good, and the child has not yet been good for
// Config.FailbackDelay and a random part of Config.FailbackJitter.
//
// A CONNECTING child is delayed as well, so that a flapping child does not take calls from a READY
// one. An IDLE child is made to connect, because it gets no call that would do that. If no priority
// is in use, there is no delay.
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

// protected reports whether the failback delay keeps a priority from taking over from the one in
// use.
func (c *Core) protected(priority int) bool {
	return c.config.FailbackDelay+c.config.FailbackJitter > 0 && c.currentPriority > priority && c.tier(c.currentPriority).good()
}

func (c *Core) stopFailback(child *child) {
	if child.failback == running {
		c.do(StopFailback, child.name)
	}
	child.failback, child.atOnce = stopped, false
}

// endFailback stops the failback timers of the given priority and of all lower ones. For the lower
// ones, it also sets the number of flaps to 0.
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
