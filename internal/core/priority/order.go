package priority

import "slices"

// row is a row of the order of last resorts (docs/tiers.md, "The order of last resorts").
type row int

const (
	rowA56     row = 1 + iota // what A56 chooses, where nothing is poor
	rowWaits                  // the reconnecting tier, which was good
	rowGood                   // the highest good tier
	rowSmall                  // the highest small tier
	rowWaitsOn                // the reconnecting tier, whatever it was
	rowFailing                // the failing tier that was good or small last
	rowNothing                // what A56 chooses, poor as it is
)

// orderOfLastResorts returns the priority that has the calls, and the row that says so: the
// first that fits. chosen is what A56 chooses. It is the first poor tier where there is one
// that A56 comes to.
func (c *Core) orderOfLastResorts(chosen int) (row, int) {
	goods, smalls := c.highest((*child).good), c.highest((*child).small)
	reconnecting, failed := c.reconnecting(), c.lastWell()
	switch {
	case !c.tier(chosen).poor():
		// What lies below a choice cannot change it.
		return rowA56, chosen
	case reconnecting != none && !c.tier(reconnecting).lost && !above(goods, reconnecting) && !above(smalls, reconnecting) &&
		!c.passes(reconnecting):
		// A56 waits; beside one above that answers nobody need.
		return rowWaits, reconnecting
	case goods != none:
		// It answers.
		return rowGood, goods
	case smalls != none:
		// Part of it answers: better than waiting or errors.
		return rowSmall, smalls
	case reconnecting != none:
		// Nobody answers, reconnecting takes milliseconds, and its timer bounds it.
		return rowWaitsOn, reconnecting
	case failed != none:
		// This changes only when a tier recovers: no to and fro.
		return rowFailing, failed
	default:
		// Nothing is READY.
		return rowNothing, chosen
	}
}

// above returns whether there is such a tier, of a higher priority than another one.
func above(tier, other int) bool { return tier != none && tier < other }

// tier returns the child of a priority, nil for one that does not exist.
func (c *Core) tier(priority int) *child { return c.children[c.config.Priorities[priority]] }

// highest returns the highest priority of a kind, none where there is none.
func (c *Core) highest(is func(*child) bool) int {
	return slices.IndexFunc(c.config.Priorities, func(name string) bool {
		child, ok := c.children[name]
		return ok && is(child)
	})
}

// reconnecting returns the tier in use, if it has been READY more recently than it has failed,
// and is IDLE or has time left to connect.
func (c *Core) reconnecting() int {
	return c.highest(func(child *child) bool {
		return child == c.published && child.seenReady && child.hasTime()
	})
}

// lastWell returns of the failing tiers the one that was good or small last, the highest where
// none ever was.
func (c *Core) lastWell() int {
	last := c.highest((*child).failing)
	for priority, name := range c.config.Priorities {
		if child, ok := c.children[name]; ok && child.failing() && child.wellUntil > c.tier(last).wellUntil {
			last = priority
		}
	}
	return last
}

// lookBelow tells the first poor tier and those below it to connect where they are IDLE, and
// makes one that does not exist, unless one above it has time left to connect: A56 is lazy. It
// returns whether it made one. It goes no further than to a tier that has the calls because it
// is good, or was.
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
