package priority

// ChooseAgain repeats the choice without a new event.
func (c *Core) ChooseAgain() []Action { return c.choose() }

// Higher reports whether a child above the given one is good, or may still become READY and is not
// skipped.
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

// Waits reports whether the child is good and higher than the child in use.
func (c *Core) Waits(name string) bool {
	for _, p := range c.config.Priorities[:max(c.currentPriority, 0)] {
		if p == name {
			return c.children[p].good()
		}
	}
	return false
}
