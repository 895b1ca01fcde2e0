package priority

import (
	"slices"
	"time"
)

// Near groups are priorities with the same number (Config.Of). They are made from one priority of
// the source, according to the distance of its endpoints. Config.WarmStandby counts numbers.
//
// Near groups do not wait for their failover timers one after the other. If the first group is not
// READY within headStart, the other groups are started as standbys. When the first group's failover
// timer fires, each of them is then usually READY or has failed:
//
//	a and b of one number; headStart fired for a  ->  create b, start b's failover timer
//
// The head start begins when the first group is created or leaves READY or IDLE, or when a group
// becomes the first.

// headStart is the time during which only the first group of a number is connected.
const headStart = time.Second

// number returns the number of a priority. Without near groups, that is its index.
func (c *Core) number(priority int) int {
	if c.config.Of == nil {
		return priority
	}
	return c.config.Of[priority]
}

// leads reports whether a child is the first of several groups with the same number.
func (c *Core) leads(name string) bool {
	priority := slices.Index(c.config.Priorities, name)
	return priority >= 0 && priority+1 < len(c.config.Priorities) && c.number(priority) == c.number(priority+1) && c.leader(priority) == priority
}

// leader returns the index of the first group that has the same number as the given priority.
func (c *Core) leader(priority int) int {
	for priority > 0 && c.number(priority-1) == c.number(priority) {
		priority--
	}
	return priority
}

// late reports whether the head start of a priority's first group is over.
func (c *Core) late(priority int) bool {
	first := c.tier(c.leader(priority))
	return first != nil && first.headStart == fired
}

// hastens reports whether a standby is needed although the priority in use is not READY. This is
// the case if both have the same number, the head start of that number is over, and calls wait.
func (c *Core) hastens(inUse, standby int) bool {
	return c.number(standby) == c.number(inUse) && c.late(inUse) && c.stateOf(inUse) != Idle
}

// race starts or stops the head start of a child, depending on the child's last report.
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

// HeadStartTimerFired handles the end of the timer that StartHeadStart started.
func (c *Core) HeadStartTimerFired(name string) []Action {
	child, ok := c.children[name]
	if !ok || child.headStart != running {
		return nil
	}
	child.headStart = fired
	return c.choose()
}
