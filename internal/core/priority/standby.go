package priority

import "slices"

// lastStandby returns the lowest standby below inUse, the priority in use. If there is none, it
// returns inUse.
func (c *Core) lastStandby(inUse int) int {
	last, numbers := inUse, 0
	for p := inUse + 1; p < len(c.config.Priorities); p++ {
		if c.number(p) != c.number(p-1) {
			numbers++
		}
		if numbers > c.config.WarmStandby || c.config.WarmStandby == 0 && !c.late(inUse) {
			break
		}
		last = p
	}
	return last
}

// keepStandbys keeps standbys from being destroyed if the priority in use is READY, or if its head
// start is over. It makes IDLE standbys connect, unless the priority in use is IDLE itself.
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
		if state == Ready || c.hastens(inUse, inUse+1+i) {
			c.maybeReactivate(child)
		}
		if state != Idle && child.deactivation != running {
			c.wake(child)
		}
	}
}

func (c *Core) askForStandbys(inUse int) {
	if c.missingStandby(inUse) != "" && !c.standbyAsked {
		c.standbyAsked = true
		c.do(MakeStandby, "")
	}
}

// StandbyDue is the event that MakeStandby requests. It creates one standby. The choice after the
// standby's update requests the next one.
func (c *Core) StandbyDue() []Action {
	c.standbyAsked = false
	if c.updating || c.waitingFor != nil || c.currentPriority == none {
		return nil
	}
	if name := c.missingStandby(c.currentPriority); name != "" {
		c.makeChild(name).standby = true
	}
	return c.take()
}

// missingStandby returns the name of the next standby to create, or "". Standbys are created when
// the priority in use is READY, or when its head start is over.
func (c *Core) missingStandby(inUse int) string {
	for i, childName := range c.standbys(inUse) {
		if _, ok := c.children[childName]; !ok && (c.stateOf(inUse) == Ready || c.hastens(inUse, inUse+1+i)) {
			return childName
		}
	}
	return ""
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
	return i >= 0 && (c.stateOf(c.currentPriority) == Ready || c.hastens(c.currentPriority, c.currentPriority+1+i))
}

func (c *Core) standbys(inUse int) []string {
	return c.config.Priorities[inUse+1 : c.lastStandby(inUse)+1]
}

// wake makes an IDLE child connect, at most once after each report of the child.
func (c *Core) wake(child *child) {
	if child.connectivityState() == Idle && !child.woken {
		child.woken = true
		c.do(ExitIdle, child.name)
	}
}

// passes reports whether Config.FastFailover skips a priority because a lower one is good or small.
// A priority is skipped if it reconnects, if it is a standby that was never connected, or if it is
// IDLE and below a skipped one. standsAside decides whether candidates are skipped.
func (c *Core) passes(priority int) bool {
	child := c.tier(priority)
	return c.config.FastFailover && c.readyBelow(priority) &&
		(child.hasLost() || child.connectivityState() == Idle && c.passed(priority))
}

func (c *Core) passed(priority int) bool {
	return c.config.FastFailover && c.readyBelow(priority) && above(c.highest((*child).hasLost), priority)
}

// hasLost reports whether a child is connecting because it has lost its connections, or is a
// standby that was never connected. A child with a single connection does not count. A server may
// close this connection gracefully, and the child is then usually connected again one handshake
// later.
func (ch *child) hasLost() bool {
	return ch.failoverTimerPending() && (ch.seenReadyOrIdle && !ch.single || ch.standby && !ch.seenReadyOrIdle)
}

func (c *Core) readyBelow(priority int) bool {
	for _, name := range c.config.Priorities[priority+1:] {
		if lower, ok := c.children[name]; ok && (lower.good() || lower.small()) {
			return true
		}
	}
	return false
}
