package priority

func (c *Core) ChooseAgain() []Action { return c.choose() }

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

func (c *Core) Waits(name string) bool {
	for _, p := range c.config.Priorities[:max(c.currentPriority, 0)] {
		if p == name {
			return c.children[p].good()
		}
	}
	return false
}
