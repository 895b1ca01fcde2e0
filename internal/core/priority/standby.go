package priority

import "slices"

// lastStandby returns the lowest standby below inUse, the priority in use. If there is none, it
// returns inUse. Want may ask for more standbys than Config.WarmStandby.
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

// Want asks for a standby below a child: the next priority that has not failed. Until the next call,
// all priorities down to this one are kept. Want("") asks for none.
func (c *Core) Want(below string) []Action {
	if c.wantedBelow == below {
		return nil
	}
	c.wantedBelow = below
	if c.currentPriority == none {
		return nil
	}
	return c.choose()
}

// lastWanted returns the lowest priority that Want asks for, or none.
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

// mayHaveStandbys reports whether the standbys of a priority are connected: it is READY or, with
// overflow, at least connecting.
func (c *Core) mayHaveStandbys(inUse int) bool {
	state := c.stateOf(inUse)
	return state == Ready || c.config.Overflow && state != Idle
}

// keepStandbys stops the deactivation timers of the standbys, and makes IDLE standbys connect. While
// the priority in use is connecting, those that are not deactivated connect, too.
//
// The failover timer of a standby works as in A56: if it fires before calls need the standby, the
// standby has failed.
func (c *Core) keepStandbys(inUse int) {
	for _, childName := range c.standbys(inUse) {
		child, ok := c.children[childName]
		if !ok {
			continue
		}
		if c.mayHaveStandbys(inUse) {
			c.maybeReactivate(child)
		}
		if c.stateOf(inUse) != Idle && child.deactivation != running {
			c.exitIdle(child)
		}
	}
}

func (c *Core) askForStandbys(inUse int) {
	if c.missingStandby(inUse) != "" && !c.standbyRequested {
		c.standbyRequested = true
		c.addAction(MakeStandby, "")
	}
}

// StandbyDue is called after a MakeStandby action, when the policy has published its state. It
// creates one standby. After the update of this standby, Core requests the next standby.
func (c *Core) StandbyDue() []Action {
	c.standbyRequested = false
	if c.updating || c.waitingFor != nil || c.currentPriority == none {
		return nil
	}
	if name := c.missingStandby(c.currentPriority); name != "" {
		c.makeChild(name)
	}
	return c.takeActions()
}

// missingStandby returns the name of the next standby to create, or "".
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

// Standby reports whether a child is connected only in case that a higher priority fails.
func (c *Core) Standby(name string) bool {
	return !c.updating && c.currentPriority != none && c.mayHaveStandbys(c.currentPriority) &&
		slices.Contains(c.standbys(c.currentPriority), name)
}

func (c *Core) standbys(inUse int) []string {
	return c.config.Priorities[inUse+1 : c.lastStandby(inUse)+1]
}

// exitIdle makes an IDLE child connect. It adds at most one action after each report of the child.
func (c *Core) exitIdle(child *child) {
	if child.connectivityState() == Idle && !child.exitIdleSent {
		child.exitIdleSent = true
		c.addAction(ExitIdle, child.name)
	}
}
