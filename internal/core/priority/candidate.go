package priority

import "slices"

// reorder is called when an update may have changed the order of the priorities. It has no effect
// if the priorities down to the one in use are the same as before.
//
// Otherwise, each child that the update has put above the child in use becomes a candidate until it
// is READY. With Config.FastFailover or a failback delay, no call waits for a candidate while the
// child in use is READY. A child that was already good when the update moved it up takes over
// without a failback delay.
func (c *Core) reorder(before []string) {
	was, is := none, none
	if c.published != nil && c.children[c.published.name] == c.published {
		was, is = slices.Index(before, c.published.name), slices.Index(c.config.Priorities, c.published.name)
	}
	c.currentPriority = is
	if is != none && was != none && slices.Equal(before[:was], c.config.Priorities[:is]) {
		return
	}
	above := c.config.Priorities[:max(is, 0)]
	candidates := make(map[string]bool)
	for _, name := range above {
		put := was == none || !slices.Contains(before[:was], name)
		candidates[name] = put || c.candidates[name]
		if child, ok := c.children[name]; ok && put {
			child.atOnce, child.late = child.atOnce || child.good(), false
		}
	}
	c.candidates = candidates
	for _, name := range c.names() {
		c.forgetFlaps(c.children[name])
		if !slices.Contains(above, name) {
			c.stopFailback(c.children[name])
		}
	}
}

// standsAside reports whether a priority is a candidate (see reorder) that gets no calls yet,
// because the priority in use, which is lower, is READY or reconnecting.
func (c *Core) standsAside(priority int) bool {
	child := c.tier(priority)
	candidate := c.asides() && c.candidates[c.config.Priorities[priority]] || child != nil && child.late
	if !candidate || c.currentPriority <= priority {
		return false
	}
	inUse := c.tier(c.currentPriority)
	return inUse.connectivityState() == Ready || inUse.seenReady && inUse.hasTime()
}

// comesLate reports whether calls would leave the priority in use, which is good or small, and wait
// for a higher one that is connecting, although the choice does not belong to an update. In A56,
// this never happens. Here it could, if a poor priority above the connecting one has just run out
// of time to connect.
func (c *Core) comesLate(priority int) bool {
	if c.ofUpdate || c.currentPriority <= priority || c.stateOf(priority) != Connecting {
		return false
	}
	child, inUse := c.tier(priority), c.tier(c.currentPriority)
	return !child.late && !child.poor() && (inUse.good() || inUse.small())
}

func (c *Core) asides() bool {
	return c.config.FastFailover || c.config.FailbackDelay+c.config.FailbackJitter > 0
}

func (c *Core) noCandidate(child *child) {
	delete(c.candidates, child.name)
	child.late = false
}

// asideOf corrects a choice for which calls would wait. aside is the first candidate for which
// standsAside is true, or none. If there is one, calls wait for it instead, because it is higher.
func (c *Core) asideOf(aside, chosen int) int {
	if aside == none || chosen == c.currentPriority || c.tier(chosen).connectivityState() == Ready || c.tier(chosen).poor() {
		return chosen
	}
	return aside
}

// heldBack reports whether a missing child must not be created yet. This is so if the failback
// delay protects a lower priority, and a priority above the missing one may take over first.
func (c *Core) heldBack(priority int) bool {
	return c.protected(priority) && above(c.highest(func(ch *child) bool { return ch.good() || ch.hasTime() }), priority)
}
