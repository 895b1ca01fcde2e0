package priority

// ChooseAgain runs the choice again, with nothing new.
func (c *Core) ChooseAgain() []Action { return c.choose() }

// Higher returns whether a child of a higher priority than the given one is good, or has time
// left to connect, and is not passed where A56's choice goes on.
func (c *Core) Higher(name string) bool {
	for i, p := range c.config.Priorities {
		if p == name {
			return false
		}
		child := c.children[p]
		if child == nil {
			continue
		}
		if !child.poor() && c.passes(i) {
			continue
		}
		if child.good() || child.hasTime() {
			return true
		}
	}
	return false
}

// Waits returns whether the child is good, and of a higher priority than the one in use.
func (c *Core) Waits(name string) bool {
	for _, p := range c.config.Priorities[:max(c.currentPriority, 0)] {
		if p == name {
			return c.children[p].good()
		}
	}
	return false
}
