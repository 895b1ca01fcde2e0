package priority

import "slices"

// row is a row of the table in docs/tiers.md ("The order of last resorts"). condition.go defines
// good, small, failing and poor.
type row int

const (
	rowA56     row = 1 + iota // A56's choice, unless it is poor
	rowWaits                  // the priority in use, if it reconnects and was not poor
	rowGood                   // the highest good priority
	rowSmall                  // the highest small priority
	rowWaitsOn                // the priority in use, if it reconnects
	rowFailing                // the failing priority that was the last to be good or small
	rowNothing                // A56's choice, although it is poor
)

// orderOfLastResorts returns the first row that applies, and the priority that gets the calls.
//
// If chosen, the result of choiceOfA56, is not poor, it gets the calls. Otherwise, the highest good
// priority gets them or, if there is none, the highest small one. There is one exception: while the
// priority in use reconnects, calls wait for it, unless it was poor before. The exception ends when
// a higher priority is good or small, or when Config.FastFailover skips the one in use. If no
// priority is good or small, the last three rows decide.
func (c *Core) orderOfLastResorts(chosen int) (row, int) {
	goods, smalls := c.highest((*child).good), c.highest((*child).small)
	reconnecting, failed := c.reconnecting(), c.lastWell()
	switch {
	case !c.tier(chosen).poor():
		return rowA56, chosen
	case reconnecting != none && !c.tier(reconnecting).lost && !above(goods, reconnecting) && !above(smalls, reconnecting) &&
		!c.passes(reconnecting):
		// A56 also waits here. The wait is unnecessary if a higher priority can take the calls.
		return rowWaits, reconnecting
	case goods != none:
		return rowGood, goods
	case smalls != none:
		// Some endpoints respond. That is better than waiting, and better than errors.
		return rowSmall, smalls
	case reconnecting != none:
		// No priority responds. Waiting for a reconnection usually takes milliseconds, and the failover
		// timer limits it.
		return rowWaitsOn, reconnecting
	case failed != none:
		// The result stays the same until a priority recovers, so calls do not move back and forth.
		return rowFailing, failed
	default:
		return rowNothing, chosen
	}
}

func above(tier, other int) bool { return tier != none && tier < other }

func (c *Core) tier(priority int) *child { return c.children[c.config.Priorities[priority]] }

func (c *Core) highest(is func(*child) bool) int {
	return slices.IndexFunc(c.config.Priorities, func(name string) bool {
		child, ok := c.children[name]
		return ok && is(child)
	})
}

// reconnecting returns the priority in use if it is reconnecting: it was READY after its last
// failure, and calls may still wait for it. Otherwise it returns none.
func (c *Core) reconnecting() int {
	return c.highest(func(child *child) bool {
		return child == c.published && child.seenReady && child.hasTime()
	})
}

// lastWell returns the failing priority that was good or small most recently. If none has ever been
// good or small, it returns the highest failing priority.
func (c *Core) lastWell() int {
	last := c.highest((*child).failing)
	for priority, name := range c.config.Priorities {
		if child, ok := c.children[name]; ok && child.failing() && child.wellUntil > c.tier(last).wellUntil {
			last = priority
		}
	}
	return last
}

// lookBelow connects priorities to which calls could move, from first on. It makes IDLE ones
// connect. It creates the next missing one, unless a higher one may still become READY; made
// reports whether it has. In rowWaits and rowGood, it stops at the chosen priority, because no
// lower one is needed.
func (c *Core) lookBelow(first int, row row, chosen int) (made bool) {
	last := len(c.config.Priorities) - 1
	if row == rowWaits || row == rowGood {
		last = chosen
	}
	goods, waited := c.highest((*child).good), c.highest((*child).hasTime)
	for priority := first; priority <= last; priority++ {
		name := c.config.Priorities[priority]
		child, ok := c.children[name]
		switch {
		case ok:
			c.maybeReactivate(child)
			c.wake(child)
		case !above(waited, priority):
			c.makeChild(name).standby = goods != none
			return true
		}
	}
	return false
}
