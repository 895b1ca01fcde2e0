package priority

import "slices"

// lastStandby returns the lowest priority that is a standby while the given one is in
// use, or the given one where there is none.
func (c *Core) lastStandby(inUse int) int {
	last, numbers := inUse, 0 // below that of the one in use
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

// keepStandbys keeps the next Config.WarmStandby priorities from being destroyed once the
// one in use is READY, and near groups while their first is late. An IDLE one is asked to connect, but not for a priority in use
// that is IDLE itself: there are no calls.
//
// A standby's failover timer runs from when it was made, and means what it means in A56:
// when the standby is needed, and its timer has fired, it has failed.
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

// askForStandbys asks for the event in which standbys are made that do not exist.
func (c *Core) askForStandbys(inUse int) {
	if c.missingStandby(inUse) != "" && !c.standbyAsked {
		c.standbyAsked = true
		c.do(MakeStandby, "")
	}
}

// StandbyDue handles what MakeStandby asked for: it makes one standby, if one is still
// wanted. The choice after its update asks for the next.
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

// missingStandby returns the name of the highest standby that does not exist and is to
// be made, "" for none: the priority in use is READY, or its number is late.
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

// Standby returns whether the child is connected although it is not needed yet.
func (c *Core) Standby(name string) bool {
	if c.updating || c.currentPriority == none {
		return false
	}
	i := slices.Index(c.standbys(c.currentPriority), name)
	return i >= 0 && (c.stateOf(c.currentPriority) == Ready || c.hastens(c.currentPriority, c.currentPriority+1+i))
}

// standbys returns the names of the priorities that are standbys while the given one is
// in use.
func (c *Core) standbys(inUse int) []string {
	return c.config.Priorities[inUse+1 : c.lastStandby(inUse)+1]
}

// wake tells a child that is IDLE to connect, once for each report.
func (c *Core) wake(child *child) {
	if child.connectivityState() == Idle && !child.woken {
		child.woken = true
		c.do(ExitIdle, child.name)
	}
}

// passes returns whether a child that connects is not waited for, since a lower one is
// READY and its calls do not fail (Config.FastFailover). It has lost its connections, or
// was made while another one had or could take the calls. Below one that is passed, one
// that is IDLE is told to connect, and passed as well. One that an
// update has put above the one in use is another matter; see standsAside.
func (c *Core) passes(priority int) bool {
	child := c.tier(priority)
	return c.config.FastFailover && c.readyBelow(priority) &&
		(child.hasLost() || child.connectivityState() == Idle && c.passed(priority))
}

// passed returns whether a child above is passed.
func (c *Core) passed(priority int) bool {
	return c.config.FastFailover && c.readyBelow(priority) && above(c.highest((*child).hasLost), priority)
}

// hasLost returns whether the child connects, and has lost its connections, or is a standby that
// never had any. One that can hold only one loses it whenever the server ends it on purpose,
// and has another a handshake later.
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
