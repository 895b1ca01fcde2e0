package priority

// ChooseAgain runs the choice again, with nothing new.
func (c *Core) ChooseAgain() []Action { return c.choose() }

// Higher returns whether a child of a higher priority than the given one is READY
// or IDLE or has time to connect.
func (c *Core) Higher(name string) bool {
	for _, p := range c.config.Priorities {
		if p == name {
			return false
		}
		child := c.children[p]
		if s := child.connectivityState(); s == Ready || s == Idle || child.failoverTimerPending() {
			return true
		}
	}
	return false
}

// Waits returns whether the child is READY, and of a higher priority than the one in
// use.
func (c *Core) Waits(name string) bool {
	for _, p := range c.config.Priorities[:max(c.currentPriority, 0)] {
		if p == name {
			return c.children[p].connectivityState() == Ready
		}
	}
	return false
}
