package priority

import "slices"

// reorder is called when an update may have changed the order of the priorities. before is the
// previous order. If the priorities above the child in use have not changed, reorder only updates
// currentPriority.
//
// Otherwise, each child that the update has put above the child in use becomes a candidate until it
// is READY. With Config.FastFailover or a failback delay, no call waits for a candidate while the
// child in use is READY. A child that was already good when the update moved it up takes over
// without a failback delay.
func (c *Core) reorder(before []string) {
	oldIndex, newIndex := none, none
	if c.published != nil && c.children[c.published.name] == c.published {
		oldIndex, newIndex = slices.Index(before, c.published.name), slices.Index(c.config.Priorities, c.published.name)
	}
	c.currentPriority = newIndex
	if newIndex != none && oldIndex != none && slices.Equal(before[:oldIndex], c.config.Priorities[:newIndex]) {
		return
	}
	above := c.config.Priorities[:max(newIndex, 0)]
	candidates := make(map[string]bool)
	for _, name := range above {
		movedUp := oldIndex == none || !slices.Contains(before[:oldIndex], name)
		candidates[name] = movedUp || c.candidates[name]
		if child, ok := c.children[name]; ok && movedUp {
			child.skipsFailbackDelay, child.isLateCandidate = child.skipsFailbackDelay || child.isGood(), false
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

// isSkippedCandidate reports whether a priority is a candidate (see reorder) that calls do not wait
// for, because the lower priority in use is READY or reconnecting.
func (c *Core) isSkippedCandidate(priority int) bool {
	child := c.childAt(priority)
	candidate := c.skipsCandidates() && c.candidates[c.config.Priorities[priority]] || child != nil && child.isLateCandidate
	if !candidate || c.currentPriority <= priority {
		return false
	}
	inUse := c.childAt(c.currentPriority)
	return inUse.connectivityState() == Ready || inUse.seenReady && inUse.hasTime()
}

// becomesLateCandidate reports whether the choice of a connecting priority would make calls wait,
// although the lower priority in use can serve them (it is good or small). In A56, only an update
// can have this effect. In this package, it could also happen when the failover timer of a poor
// priority above the connecting one fires.
func (c *Core) becomesLateCandidate(priority int) bool {
	if c.isFirstAfterUpdate || c.currentPriority <= priority || c.stateOf(priority) != Connecting {
		return false
	}
	child, inUse := c.childAt(priority), c.childAt(c.currentPriority)
	return !child.isLateCandidate && !child.isPoor() && (inUse.isGood() || inUse.isSmall())
}

func (c *Core) skipsCandidates() bool {
	return c.config.FastFailover || c.config.FailbackDelay+c.config.FailbackJitter > 0
}

func (c *Core) removeCandidate(child *child) {
	delete(c.candidates, child.name)
	child.isLateCandidate = false
}

// preferCandidate returns the priority for which calls wait. skipped is the first candidate that
// isSkippedCandidate has skipped, or none. If the chosen priority would make calls wait, they wait
// for the skipped one instead, because it is higher.
func (c *Core) preferCandidate(skipped, chosen int) int {
	if skipped == none || chosen == c.currentPriority || c.childAt(chosen).connectivityState() == Ready || c.childAt(chosen).isPoor() {
		return chosen
	}
	return skipped
}

// isCreationDelayed reports whether the child of a priority must not be created yet: the failback
// delay protects a lower priority, and another priority above the missing child may still take
// over.
func (c *Core) isCreationDelayed(priority int) bool {
	return c.isProtectedFrom(priority) && isAbove(c.highest(func(ch *child) bool { return ch.isGood() || ch.hasTime() }), priority)
}
