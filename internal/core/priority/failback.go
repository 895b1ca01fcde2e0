package priority

// failbackDelayed tells whether a child may not be used yet although the policy in
// A56 would look no further: the priority in use before this choice is a lower one
// that is READY, and the child has not been READY for as long as
// Config.FailbackDelay. A child that is CONNECTING is no exception: one that flaps
// does not take the calls over from one that is READY. One that is IDLE is told to
// connect, since otherwise no call would ever make it.
//
// There is no delay in the first choice and after a change of the priorities, where
// none was in use before. Where one was, all children down to it exist.
func (c *Core) failbackDelayed(priority int, child *child) bool {
	previous := c.currentPriority
	if c.config.FailbackDelay == 0 || previous <= priority {
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
		c.start(StartFailback, child, c.config.FailbackDelay)
	case child.connectivityState() == Idle && !child.woken:
		child.woken = true
		c.do(ExitIdle, child.name)
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
// all lower ones: they have nothing to wait for.
func (c *Core) endFailback(priority int) {
	for _, childName := range c.config.Priorities[priority:] {
		if child, ok := c.children[childName]; ok {
			c.stopFailback(child)
		}
	}
}

// forgetFailback makes the next choice one without a failback delay.
func (c *Core) forgetFailback() {
	c.currentPriority = none
	for _, name := range c.names() {
		c.stopFailback(c.children[name])
	}
}
