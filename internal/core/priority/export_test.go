package priority

func (c *Core) ChooseAgain() []Action { return c.choose() }

func (c *Core) HasUsableHigher(name string) bool {
	for i, p := range c.config.Priorities {
		if p == name {
			return false
		}
		child := c.children[p]
		if child == nil {
			continue
		}
		if !child.isPoor() && c.isSkipped(i) {
			continue
		}
		if child.isGood() || child.hasTime() {
			return true
		}
	}
	return false
}

func (c *Core) WaitsForFailback(name string) bool {
	for _, p := range c.config.Priorities[:max(c.currentPriority, 0)] {
		if p == name {
			return c.children[p].isGood()
		}
	}
	return false
}
