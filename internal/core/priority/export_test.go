package priority

// ChooseAgain runs the choice again, with nothing new.
func (c *Core) ChooseAgain() []Action { return c.choose() }

// Higher returns whether a child of a higher priority than the given one is READY and
// not poor, or IDLE, or is waited for while it connects. One that was poor before does
// not count.
func (c *Core) Higher(name string) bool {
	passed := false
	for i, p := range c.config.Priorities {
		if p == name {
			return false
		}
		child := c.children[p]
		if c.passes(i, child, passed) {
			passed = true
			continue
		}
		s := child.connectivityState()
		if !child.lost && (s == Ready && !child.poor() || s == Idle || child.failoverTimerPending()) {
			return true
		}
	}
	return false
}

// Waits returns whether the child is READY and not poor, and of a higher priority than
// the one in use.
func (c *Core) Waits(name string) bool {
	for _, p := range c.config.Priorities[:max(c.currentPriority, 0)] {
		if p == name {
			return c.children[p].connectivityState() == Ready && !c.children[p].poor()
		}
	}
	return false
}
