package priority

import "slices"

// Standbys are connected before calls need them. p0 is in use and READY, WarmStandby is 1:
//
//	Priorities                         p0  p1  p2  p3  p4
//	SourcePriorities                    0   1   1   2   2
//	standbys                                x   x
//	after WantStandbyBelow("p2")            x   x   x
//	  and when p3 fails                     x   x   x   x
//
// We create them one by one, so that calls never wait for one: while a standby is missing, we ask for
// a call of StandbyDue. A standby's failover timer runs as in A56: a standby may fail before it is
// needed.

// lastStandby returns inUse if there is none.
func (c *Core) lastStandby(inUse int) int {
	last, numbers := inUse, 0
	for p := inUse + 1; p < len(c.config.Priorities) && c.config.WarmStandby > 0; p++ {
		if c.config.SourcePriorities == nil || c.config.SourcePriorities[p] != c.config.SourcePriorities[p-1] {
			numbers++
		}
		if numbers > c.config.WarmStandby {
			break
		}
		last = p
	}
	return max(last, c.lastWanted())
}

// WantStandbyBelow asks for a standby below a child: the next priority that has not failed. We keep
// all priorities down to that one until the next call. "" asks for none.
func (c *Core) WantStandbyBelow(below string) []Action {
	if c.wantedBelow == below {
		return nil
	}
	c.wantedBelow = below
	if c.currentPriority == none {
		return nil
	}
	return c.choose()
}

func (c *Core) lastWanted() int {
	last := slices.Index(c.config.Priorities, c.wantedBelow)
	if last == none {
		return none
	}
	for last+1 < len(c.config.Priorities) {
		last++
		if child, ok := c.children[c.config.Priorities[last]]; !ok || child.connectivityState() != TransientFailure {
			break
		}
	}
	return last
}

func (c *Core) mayHaveStandbys(inUse int) bool {
	state := c.stateOf(inUse)
	return state == Ready || c.config.Overflow && state != Idle
}

func (c *Core) keepStandbys(inUse int) {
	for _, childName := range c.standbys(inUse) {
		child, ok := c.children[childName]
		if !ok {
			continue
		}
		if c.mayHaveStandbys(inUse) {
			c.maybeReactivate(child)
		}
		if c.stateOf(inUse) != Idle && child.lifetime == active {
			c.exitIdle(child)
		}
	}
}

// StandbyDue creates one standby. After its update we ask for the next call.
func (c *Core) StandbyDue() []Action {
	c.standbyRequested = false
	if c.creating != nil || c.currentPriority == none {
		return nil
	}
	if name := c.missingStandby(c.currentPriority); name != "" {
		c.create(name)
	}
	return c.takeActions()
}

func (c *Core) missingStandby(inUse int) string {
	if !c.mayHaveStandbys(inUse) {
		return ""
	}
	for _, childName := range c.standbys(inUse) {
		if _, ok := c.children[childName]; !ok {
			return childName
		}
	}
	return ""
}

// Standby is true if a child is connected only in case that a higher priority fails. An update has no
// standbys until it ends.
func (c *Core) Standby(name string) bool {
	return c.currentPriority != none && c.mayHaveStandbys(c.currentPriority) &&
		slices.Contains(c.standbys(c.currentPriority), name)
}

func (c *Core) standbys(inUse int) []string {
	return c.config.Priorities[inUse+1 : c.lastStandby(inUse)+1]
}
