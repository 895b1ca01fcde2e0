package priority

import "slices"

// row is a row of the table in docs/tiers.md ("The order of last resorts"). condition.go defines
// good, small, failing and poor.
type row int

const (
	rowA56      row = 1 + iota // A56's choice, unless it is poor
	rowWaitGood                // the priority in use, if it is reconnecting and was not poor
	rowGood                    // the highest good priority
	rowSmall                   // the highest small priority
	rowWaitPoor                // the priority in use, if it is reconnecting and was poor
	rowFailing                 // the failing priority that was good or small most recently
	rowPoor                    // A56's choice, although it is poor
)

// orderOfLastResorts returns the first row that applies, and the priority that gets the calls.
//
// chosen is the result of choiceOfA56. If it is not poor, it gets the calls. Otherwise, the highest
// good priority gets them or, if no priority is good, the highest small one. There is one
// exception: while the priority in use reconnects, calls wait for it, unless it was poor before.
// The exception ends when a higher priority is good or small, or when Config.FastFailover skips the
// priority in use. If no priority is good or small, the last three rows decide.
func (c *Core) orderOfLastResorts(chosen int) (row, int) {
	highestGood, highestSmall := c.highest((*child).isGood), c.highest((*child).isSmall)
	reconnecting, lastFailing := c.reconnecting(), c.lastWellFailing()
	switch {
	case !c.childAt(chosen).isPoor():
		return rowA56, chosen
	case reconnecting != none && !c.childAt(reconnecting).wasPoor && !isAbove(highestGood, reconnecting) && !isAbove(highestSmall, reconnecting) &&
		!c.isSkipped(reconnecting):
		// A56 also waits here. The wait is unnecessary if a higher priority can take the calls.
		return rowWaitGood, reconnecting
	case highestGood != none:
		return rowGood, highestGood
	case highestSmall != none:
		// Some endpoints of this priority respond. That is better than waiting or errors.
		return rowSmall, highestSmall
	case reconnecting != none:
		// No priority responds. Waiting for a reconnection usually takes milliseconds, and the failover
		// timer limits it.
		return rowWaitPoor, reconnecting
	case lastFailing != none:
		// The result stays the same until a priority recovers, so calls do not move back and forth.
		return rowFailing, lastFailing
	default:
		return rowPoor, chosen
	}
}

func isAbove(priority, other int) bool { return priority != none && priority < other }

func (c *Core) childAt(priority int) *child { return c.children[c.config.Priorities[priority]] }

func (c *Core) highest(matches func(*child) bool) int {
	return slices.IndexFunc(c.config.Priorities, func(name string) bool {
		child, ok := c.children[name]
		return ok && matches(child)
	})
}

// reconnecting returns the priority in use if it is reconnecting: it was READY after its last
// failure, and calls may still wait for it. Otherwise it returns none.
func (c *Core) reconnecting() int {
	return c.highest(func(child *child) bool {
		return child == c.published && child.seenReady && child.hasTime()
	})
}

// lastWellFailing returns the failing priority that was good or small most recently. If no failing
// priority has ever been good or small, it returns the highest one.
func (c *Core) lastWellFailing() int {
	last := c.highest((*child).isFailing)
	for priority, name := range c.config.Priorities {
		if child, ok := c.children[name]; ok && child.isFailing() && child.lastWellReport > c.childAt(last).lastWellReport {
			last = priority
		}
	}
	return last
}

// connectBelow connects the priorities to which calls could move, beginning with first. It makes
// IDLE priorities connect. It creates the next missing priority, unless a higher one may still
// become READY; created reports whether it has created one. In rowWaitGood and rowGood, it stops at
// the chosen priority, because no lower priority is needed.
func (c *Core) connectBelow(first int, row row, chosen int) (created bool) {
	last := len(c.config.Priorities) - 1
	if row == rowWaitGood || row == rowGood {
		last = chosen
	}
	highestGood, highestConnecting := c.highest((*child).isGood), c.highest((*child).hasTime)
	for priority := first; priority <= last; priority++ {
		name := c.config.Priorities[priority]
		child, ok := c.children[name]
		switch {
		case ok:
			c.maybeReactivate(child)
			c.exitIdle(child)
		case !isAbove(highestConnecting, priority):
			c.makeChild(name).standby = highestGood != none
			return true
		}
	}
	return false
}
