package priority

import "slices"

// We connect standbys before calls need them. For example, if p0 is in use and READY, and
// WarmStandby is 1:
//
//	Priorities                         p0  p1  p2  p3  p4
//	SourcePriorities                    0   1   1   2   2
//	standbys                                x   x
//	after WantStandbyBelow("p2")            x   x   x
//	  and when p3 fails                     x   x   x   x
//
// Creating a standby should never hold up calls, so we create one at a time, and ask the policy to
// call StandbyDue for the next. A standby has a failover timer like any other child (A56), which
// means that it can fail before it's ever needed.

// lastStandby returns inUse if there are no standbys.
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

// WantStandbyBelow asks for one standby below the given child, i.e. the next priority that hasn't
// failed. Until the next call, we keep all priorities down to that one. With "", we don't need such
// a standby.
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

// StandbyDue creates one standby. When its update is done, we ask for the next call.
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

// Standby returns true if a child is only connected in case a higher priority fails. During an
// update there are no standbys.
func (c *Core) Standby(name string) bool {
	return c.currentPriority != none && c.mayHaveStandbys(c.currentPriority) &&
		slices.Contains(c.standbys(c.currentPriority), name)
}

func (c *Core) standbys(inUse int) []string {
	return c.config.Priorities[inUse+1 : c.lastStandby(inUse)+1]
}
