package priority

// failbackDelayed reports whether a child may not be used yet because of the failback delay. It may
// not if the priority in use is lower and good, and the child has not yet been good for
// Config.FailbackDelay plus a random part of Config.FailbackJitter.
//
// The delay also applies to a CONNECTING child. Otherwise, a flapping child would take calls from a
// READY one. An IDLE child is made to connect, because no call reaches it. If no
// priority is in use, there is no delay.
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

// protected reports whether the failback delay protects the priority in use from being replaced by
// the given one.
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
// ones, it also resets the number of flaps.
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
