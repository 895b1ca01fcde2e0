package priority

import (
	"slices"
	"time"
)

// Near groups are priorities of one number (Config.Of): a priority of the source that was split by
// how near its endpoints are. Config.WarmStandby counts numbers. And they do not wait for each
// other's failover timers in a row: where the first of a number is not READY for headStart, the
// others are started as standbys are, so that they have failed, or are READY, when its timer fires.
//
//	a and b of one number; headStart fired for a  ->  create b, start b's failover timer
//
// The time runs from when the first group begins to be waited for: it is made, or READY or IDLE no
// longer, or the first no sooner than now.

// headStart is how long the first group of a number has the time for itself.
const headStart = time.Second

// number returns the number of a priority: its own where nothing is split.
func (c *Core) number(priority int) int {
	if c.config.Of == nil {
		return priority
	}
	return c.config.Of[priority]
}

// leads returns whether a child is the first group of a number that has others.
func (c *Core) leads(name string) bool {
	priority := slices.Index(c.config.Priorities, name)
	return priority >= 0 && priority+1 < len(c.config.Priorities) && c.number(priority) == c.number(priority+1) && c.leader(priority) == priority
}

// leader returns the first group of a priority's number.
func (c *Core) leader(priority int) int {
	for priority > 0 && c.number(priority-1) == c.number(priority) {
		priority--
	}
	return priority
}

// late returns whether the first group of a priority's number has had its head start.
func (c *Core) late(priority int) bool {
	first := c.tier(c.leader(priority))
	return first != nil && first.headStart == fired
}

// hastens returns whether a standby is to be there although the priority in use is not READY: its
// number is late, and calls wait.
func (c *Core) hastens(inUse, standby int) bool {
	return c.number(standby) == c.number(inUse) && c.late(inUse) && c.stateOf(inUse) != Idle
}

// race starts and stops the head start of a child, by what it reported last.
func (c *Core) race(child *child) {
	switch runs := child.reported != Ready && child.reported != Idle && c.leads(child.name); {
	case runs && child.headStart == stopped:
		child.headStart = running
		c.start(StartHeadStart, child, headStart)
	case !runs:
		c.stopHeadStart(child)
	}
}

func (c *Core) stopHeadStart(child *child) {
	if child.headStart == running {
		c.do(StopHeadStart, child.name)
	}
	child.headStart = stopped
}

// HeadStartTimerFired handles the end of StartHeadStart's time.
func (c *Core) HeadStartTimerFired(name string) []Action {
	child, ok := c.children[name]
	if !ok || child.headStart != running {
		return nil
	}
	child.headStart = fired
	return c.choose()
}
