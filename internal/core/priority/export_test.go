package priority

func (c *Core) ChooseAgain() []Action { return c.choose() }

// HasUsableHigher reports whether a priority above the child is READY or has time.
func (c *Core) HasUsableHigher(name string) bool {
	for _, p := range c.config.Priorities {
		if p == name {
			return false
		}
		if child := c.children[p]; child != nil && (child.connectivityState() == Ready || c.Awaited(p)) {
			return true
		}
	}
	return false
}
