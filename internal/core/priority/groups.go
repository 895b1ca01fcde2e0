package priority

import (
	"slices"
	"time"
)

// Near groups are priorities with the same number in Config.SourcePriorities. They are parts of the
// same priority of the source, and differ in how far their endpoints are from the client.
// Config.WarmStandby counts them as one priority.
//
// The failover timers of near groups do not run one after the other. If the first group is not
// READY within headStart, the other groups are started as standbys. When the failover timer of the
// first group fires, each of the other groups has therefore usually become READY or failed:
//
//	a and b have the same number; headStart of a is over  ->  create b, start b's failover timer
//
// The head start begins when the first group is created, when it leaves READY or IDLE, or when
// another group becomes the first.

// headStart is how long the first near group may connect before the other groups start to connect.
const headStart = time.Second

// groupOf returns the number of a priority in Config.SourcePriorities. Without near groups, this is
// its index.
func (c *Core) groupOf(priority int) int {
	if c.config.SourcePriorities == nil {
		return priority
	}
	return c.config.SourcePriorities[priority]
}

func (c *Core) isFirstOfGroups(name string) bool {
	priority := slices.Index(c.config.Priorities, name)
	return priority >= 0 && priority+1 < len(c.config.Priorities) && c.groupOf(priority) == c.groupOf(priority+1) && c.firstOfGroup(priority) == priority
}

func (c *Core) firstOfGroup(priority int) int {
	for priority > 0 && c.groupOf(priority-1) == c.groupOf(priority) {
		priority--
	}
	return priority
}

// isHeadStartOver reports whether the head start timer of the first near group has fired, so that
// the other groups need not wait any longer.
func (c *Core) isHeadStartOver(priority int) bool {
	first := c.childAt(c.firstOfGroup(priority))
	return first != nil && first.headStart == fired
}

// isStandbyUrgent reports whether a standby is needed although the priority in use is not READY.
// This is the case if both belong to the same near groups, the head start is over, and the priority
// in use is not IDLE.
func (c *Core) isStandbyUrgent(inUse, standby int) bool {
	return c.groupOf(standby) == c.groupOf(inUse) && c.isHeadStartOver(inUse) && c.stateOf(inUse) != Idle
}

// updateHeadStart starts the head start timer of a child if it is the first of several near groups
// and is neither READY nor IDLE. Otherwise, it stops the timer.
func (c *Core) updateHeadStart(child *child) {
	switch needed := child.reported != Ready && child.reported != Idle && c.isFirstOfGroups(child.name); {
	case needed && child.headStart == stopped:
		child.headStart = running
		c.addTimer(StartHeadStart, child, headStart)
	case !needed:
		c.stopHeadStart(child)
	}
}

func (c *Core) stopHeadStart(child *child) {
	if child.headStart == running {
		c.addAction(StopHeadStart, child.name)
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
