package priority

// ChooseAgain makes a choice although nothing has happened.
func (c *Core) ChooseAgain() []Action { return c.choose() }

// Higher reports whether a child above the named one could be used instead: it is good, or may
// still become READY.
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

// Waits reports whether the child is good and above the one in use, which means that it may be
// waiting for its failback delay.
func (c *Core) Waits(name string) bool {
	for _, p := range c.config.Priorities[:max(c.currentPriority, 0)] {
		if p == name {
			return c.children[p].good()
		}
	}
	return false
}
