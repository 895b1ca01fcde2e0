package priority

// Condition describes whether the calls of a child succeed, as reported by the child's outlier
// detection. A child in any Condition can receive calls; orderOfLastResorts decides whether they go
// to another child.
type Condition uint8

const (
	// Usable means that calls are not known to fail. In A56, all children are Usable.
	Usable Condition = iota
	// Emptied means that calls to all endpoints of the child fail.
	Emptied
	// HalfOpen means that the child was Emptied, and that a few calls must show whether it has
	// recovered.
	HalfOpen
)

// Tier is the part of a child's report that gRPC's connectivity states cannot express.
type Tier struct {
	Condition Condition
	// ReadyShare is the share of the child's weight that is READY. UnprovenShare is a further share
	// that is READY, but whose endpoints were ejected before; a few calls must show whether they have
	// recovered.
	ReadyShare, UnprovenShare float64
}

// The methods below define the terms good, small, failing and poor (see docs/tiers.md).

// isGood reports whether a child is READY and Usable, and a large enough share of it is READY.
func (ch *child) isGood() bool {
	return ch.connectivityState() == Ready && ch.tier.Condition == Usable && !ch.isBelowMinReady
}

// isSmall reports whether a child is READY and Usable, but too small a share of it is READY.
func (ch *child) isSmall() bool {
	return ch.connectivityState() == Ready && ch.tier.Condition == Usable && ch.isBelowMinReady
}

// isFailing reports whether a child is READY, but calls to all of its endpoints fail.
func (ch *child) isFailing() bool {
	return ch.connectivityState() == Ready && ch.tier.Condition != Usable
}

// isPoor reports whether a child is small or failing, or was when it lost its connections and is
// now reconnecting. A child is also poor if it is reconnecting after it has lost its connections
// and calls to all of its endpoints had failed.
func (ch *child) isPoor() bool {
	return ch.isSmall() || ch.isFailing() || ch.wasPoor && ch.hasTime()
}

// hasTime reports whether calls may wait for a child to become READY: it is IDLE, or it is
// connecting and its failover timer is running.
func (ch *child) hasTime() bool {
	return ch.connectivityState() == Idle || ch.connectivityState() == Connecting && ch.failoverTimerPending()
}

// Poor reports whether a child is READY, but too small a share of it is READY or calls to all of
// its endpoints fail. If so, Poor returns the child's Tier.
func (c *Core) Poor(name string) (tier Tier, poor bool) {
	if child, ok := c.children[name]; ok && (child.isSmall() || child.isFailing()) {
		return child.tier, true
	}
	return Tier{}, false
}

// checkMinReady records whether too small a share of a child is READY. Once the share is less than
// MinReady, it is too small until it reaches MinReadyRecovery. Otherwise, small changes would move
// calls back and forth.
func (c *Core) checkMinReady(child *child) {
	threshold := c.config.MinReady
	if child.isBelowMinReady {
		threshold = max(threshold, c.config.MinReadyRecovery)
	}
	child.isBelowMinReady = child.reported == Ready && c.config.MinReady > 0 && child.tier.ReadyShare < threshold-rounding
	child.enoughIfProven = child.tier.ReadyShare+child.tier.UnprovenShare >= max(c.config.MinReady, c.config.MinReadyRecovery)-rounding
}

// rounding is larger than the rounding error of a share, and smaller than the share of one
// endpoint.
const rounding = 1e-12

// needsTrial reports whether a few calls could show that a child has recovered. Either the child is
// half-open, or its READY share would be large enough if the unproven endpoints were counted.
func (ch *child) needsTrial() bool {
	return ch.isFailing() && ch.tier.Condition == HalfOpen || ch.isSmall() && ch.enoughIfProven
}

// findTrials returns the children that get a few calls although they are not in use. Without these
// calls, nothing would show that they have recovered. A child above the child in use gets calls if
// needsTrial is true for it. If the child in use is not good, the same applies to the children
// below it. A deactivated child never gets calls.
func (c *Core) findTrials(inUse *child) []string {
	var names []string
	for priority, name := range c.config.Priorities {
		child, ok := c.children[name]
		if priority > c.currentPriority && inUse != nil && inUse.isGood() {
			break
		}
		if ok && child != inUse && child.deactivation != running && child.needsTrial() {
			names = append(names, name)
		}
	}
	return names
}
