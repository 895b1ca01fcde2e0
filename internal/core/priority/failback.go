package priority

// failbackDelayed tells whether a child may not be used yet although the policy in
// A56 would look no further: the priority in use before this choice is a lower one
// that is READY, and the child has not been READY for as long as
// Config.FailbackDelay and its part of Config.FailbackJitter. A child that is CONNECTING is no exception: one that flaps
// does not take the calls over from one that is READY. One that is IDLE is told to
// connect, since otherwise no call would ever make it.
//
// There is no delay in the first choice and after a change of the priorities, where
// none was in use before. Where one was, all children down to it exist.
func (c *Core) failbackDelayed(priority int, child *child) bool {
	previous := c.currentPriority
	if c.config.FailbackDelay+c.config.FailbackJitter == 0 || previous <= priority {
		return false
	}
	if below := c.children[c.config.Priorities[previous]]; below.connectivityState() != Ready || below.poor() {
		return false
	}
	if child.failback == fired {
		return false
	}
	switch {
	case child.connectivityState() == Ready && child.failback == stopped:
		child.failback = running
		c.actions = append(c.actions, Action{Kind: StartFailback, Child: child.name, After: c.failbackDelay(child), Jitter: c.config.FailbackJitter})
	default:
		c.wake(child)
	}
	return true
}

func (c *Core) stopFailback(child *child) {
	if child.failback == running {
		c.do(StopFailback, child.name)
	}
	child.failback = stopped
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

// forgetFailback makes the next choice one without a failback delay.
func (c *Core) forgetFailback() {
	c.currentPriority = none
	for _, name := range c.names() {
		c.stopFailback(c.children[name])
		c.forgetFlaps(c.children[name])
	}
}
