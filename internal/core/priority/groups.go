package priority

import (
	"slices"
	"time"
)

// Near groups are priorities with the same number in Config.Of. They come from one priority of the
// source, and differ in how far their endpoints are from the client. Together, they count as one
// priority in Config.WarmStandby.
//
// Near groups do not wait for their failover timers one after the other. If the first group is not
// READY within headStart, the others are started as standbys. Each of them has therefore usually
// become READY or failed when the failover timer of the first group fires:
//
//	a and b have one number; headStart of a is over  ->  create b, start b's failover timer
//
// The head start begins when the first group is created, when it leaves READY or IDLE, or when
// another group becomes the first.

// headStart is how long the first near group connects before the other groups start.
const headStart = time.Second

// number returns the number of a priority. Without near groups, this is its index.
func (c *Core) number(priority int) int {
	if c.config.Of == nil {
		return priority
	}
	return c.config.Of[priority]
}

func (c *Core) leads(name string) bool {
	priority := slices.Index(c.config.Priorities, name)
	return priority >= 0 && priority+1 < len(c.config.Priorities) && c.number(priority) == c.number(priority+1) && c.leader(priority) == priority
}

func (c *Core) leader(priority int) int {
	for priority > 0 && c.number(priority-1) == c.number(priority) {
		priority--
	}
	return priority
}

// late reports whether the near groups of a priority need not wait any longer for the head start of
// the first group.
func (c *Core) late(priority int) bool {
	first := c.tier(c.leader(priority))
	return first != nil && first.headStart == fired
}

// hastens reports whether a standby is needed although the priority in use is not READY. This is so
// if both are near groups of one priority, its head start is over, and calls wait.
func (c *Core) hastens(inUse, standby int) bool {
	return c.number(standby) == c.number(inUse) && c.late(inUse) && c.stateOf(inUse) != Idle
}

// race starts the head start timer of a first near group that is neither READY nor IDLE. For any
// other child, it stops the timer.
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

// HeadStartTimerFired is called when the timer of StartHeadStart fires.
func (c *Core) HeadStartTimerFired(name string) []Action {
	child, ok := c.children[name]
	if !ok || child.headStart != running {
		return nil
	}
	child.headStart = fired
	return c.choose()
}
