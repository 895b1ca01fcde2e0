package priority

import "slices"

// lastStandby returns the lowest standby below inUse, the priority in use. If there is none, it
// returns inUse. Want may ask for more standbys than Config.WarmStandby.
func (c *Core) lastStandby(inUse int) int {
	last, numbers := inUse, 0
	for p := inUse + 1; p < len(c.config.Priorities); p++ {
		if c.groupOf(p) != c.groupOf(p-1) {
			numbers++
		}
		if numbers > c.config.WarmStandby || c.config.WarmStandby == 0 && !c.isHeadStartOver(inUse) {
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

// keepStandbys stops the deactivation timers of the standbys that are needed. It makes IDLE standbys
// connect, unless the priority in use is IDLE, too.
//
// The failover timer of a standby works as in A56: if it fires before calls need the standby, the
// standby has failed.
func (c *Core) keepStandbys(inUse int) {
	state := c.stateOf(inUse)
	for i, childName := range c.standbys(inUse) {
		child, ok := c.children[childName]
		if !ok {
			continue
		}
		if c.isStandbyNeeded(inUse, inUse+1+i) {
			c.maybeReactivate(child)
		}
		if state != Idle && child.deactivation != running {
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
		c.makeChild(name).standby = !c.config.Overflow || c.stateOf(c.currentPriority) == Ready
	}
	return c.takeActions()
}

// missingStandby returns the name of the next standby to create, or "".
func (c *Core) missingStandby(inUse int) string {
	for i, childName := range c.standbys(inUse) {
		if _, ok := c.children[childName]; !ok && c.isStandbyNeeded(inUse, inUse+1+i) {
			return childName
		}
	}
	return ""
}

// isStandbyNeeded reports whether a standby may be connected. That is so when the priority in use is
// READY, or when its head start is over. With Config.Overflow, it is so from the start, unless the
// priority in use is IDLE, because then there are no calls.
func (c *Core) isStandbyNeeded(inUse, standby int) bool {
	state := c.stateOf(inUse)
	return state == Ready || c.config.Overflow && state != Idle || c.isStandbyUrgent(inUse, standby)
}

func (c *Core) stateOf(priority int) State {
	return c.children[c.config.Priorities[priority]].connectivityState()
}

// Standby reports whether a child is connected only in case that a higher priority fails.
func (c *Core) Standby(name string) bool {
	if c.updating || c.currentPriority == none {
		return false
	}
	i := slices.Index(c.standbys(c.currentPriority), name)
	return i >= 0 && c.isStandbyNeeded(c.currentPriority, c.currentPriority+1+i)
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

// isSkipped reports whether Config.FastFailover skips a priority because a lower priority is good
// or small. A priority is skipped if it is reconnecting, if it is a standby that was never
// connected, or if it is IDLE and below a skipped priority. For candidates, see isSkippedCandidate.
func (c *Core) isSkipped(priority int) bool {
	child := c.childAt(priority)
	return c.config.FastFailover && c.hasUsableBelow(priority) &&
		(child.isReconnecting() || child.connectivityState() == Idle && c.isBelowSkipped(priority))
}

func (c *Core) isBelowSkipped(priority int) bool {
	return c.config.FastFailover && c.hasUsableBelow(priority) && isAbove(c.highest((*child).isReconnecting), priority)
}

// isReconnecting reports whether a child is connecting because it has lost its connections, or is a
// standby that was never connected. It returns false for a child with a single connection: if the
// server closes this connection gracefully, the child is usually connected again one handshake
// later.
func (ch *child) isReconnecting() bool {
	return ch.failoverTimerPending() && (ch.seenReadyOrIdle && !ch.singleConnection || ch.standby && !ch.seenReadyOrIdle)
}

func (c *Core) hasUsableBelow(priority int) bool {
	for _, name := range c.config.Priorities[priority+1:] {
		if lower, ok := c.children[name]; ok && (lower.isGood() || lower.isSmall()) {
			return true
		}
	}
	return false
}
