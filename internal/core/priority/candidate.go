package priority

import "slices"

// reorder finds what an update of the priorities means for the one in use. Where it is still a
// priority, and those above it are the same, nothing is forgotten. Where others are put above it,
// each of them is a candidate until it is READY: with Config.FastFailover or a failback delay no
// call waits for it while the one in use is READY. One that is good already waits for no delay.
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

// standsAside returns whether a priority is a candidate that takes no calls yet: it is not READY,
// and the one in use, a lower one, is or is reconnecting.
func (c *Core) standsAside(priority int) bool {
	child := c.tier(priority)
	candidate := c.asides() && c.candidates[c.config.Priorities[priority]] || child != nil && child.late
	if !candidate || c.currentPriority <= priority {
		return false
	}
	inUse := c.tier(c.currentPriority)
	return inUse.connectivityState() == Ready || inUse.seenReady && inUse.hasTime()
}

// comesLate returns whether calls would leave the priority in use, which answers, to wait for one above
// it that connects, and for which no update is the reason. In A56 that cannot be. Here it can: the one
// above may have been behind a poor one that had time left.
func (c *Core) comesLate(priority int) bool {
	if c.ofUpdate || c.currentPriority <= priority || c.stateOf(priority) != Connecting {
		return false
	}
	child, inUse := c.tier(priority), c.tier(c.currentPriority)
	return !child.late && !child.poor() && (inUse.good() || inUse.small())
}

// asides returns whether candidates stand aside, whenever they were made.
func (c *Core) asides() bool {
	return c.config.FastFailover || c.config.FailbackDelay+c.config.FailbackJitter > 0
}

// noCandidate notes that a child is READY, or in use.
func (c *Core) noCandidate(child *child) {
	delete(c.candidates, child.name)
	child.late = false
}

// asideOf returns the choice where candidates stand aside: for the priority in use and for one
// that is READY; the rows see to what is poor. Where calls would wait for another one, they wait for
// the first of those.
func (c *Core) asideOf(aside, chosen int) int {
	if aside == none || chosen == c.currentPriority || c.tier(chosen).connectivityState() == Ready || c.tier(chosen).poor() {
		return chosen
	}
	return aside
}

// heldBack returns whether a child that does not exist is not made yet, since the failback delay
// protects a lower one, and one above may take the calls over before: A56 is lazy.
func (c *Core) heldBack(priority int) bool {
	return c.protected(priority) && above(c.highest(func(ch *child) bool { return ch.good() || ch.hasTime() }), priority)
}
