package priority

import "slices"

// reorder is called when an update may have changed the order of the priorities. It does nothing if
// the priorities down to the one in use are the same as before.
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

// standsAside reports whether a priority is a candidate (see reorder) that is skipped, because the
// lower priority in use is READY or reconnecting.
func (c *Core) standsAside(priority int) bool {
	child := c.tier(priority)
	candidate := c.asides() && c.candidates[c.config.Priorities[priority]] || child != nil && child.late
	if !candidate || c.currentPriority <= priority {
		return false
	}
	inUse := c.tier(c.currentPriority)
	return inUse.connectivityState() == Ready || inUse.seenReady && inUse.hasTime()
}

// comesLate reports whether calls would leave the priority in use, although it is good or small,
// and wait for a higher one that is connecting. Only an update may cause that in A56. Here it could
// also happen when a poor priority above the connecting one runs out of time to connect.
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

// asideOf corrects the choice of a priority that would make calls wait. aside is the first
// candidate that standsAside has skipped, or none. If calls have to wait anyway, they wait for
// aside, which is higher.
func (c *Core) asideOf(aside, chosen int) int {
	if aside == none || chosen == c.currentPriority || c.tier(chosen).connectivityState() == Ready || c.tier(chosen).poor() {
		return chosen
	}
	return aside
}

// heldBack reports whether a missing child must not be created yet: the failback delay protects a
// lower priority, and a priority above the missing one may still take over.
func (c *Core) heldBack(priority int) bool {
	return c.protected(priority) && above(c.highest(func(ch *child) bool { return ch.good() || ch.hasTime() }), priority)
}
