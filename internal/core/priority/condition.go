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
	// ReadyPart is the share of the child's weight that is READY. UnprovenPart is a further share that
	// is READY, but whose endpoints were ejected before; a few calls must show whether they have
	// recovered.
	ReadyPart, UnprovenPart float64
}

// The methods below define the terms good, small, failing and poor.

// good reports whether a child is READY and has no problem.
func (ch *child) good() bool {
	return ch.connectivityState() == Ready && ch.tier.Condition == Usable && !ch.below
}

// small reports whether a child is READY, and its only problem is that too small a share of it is
// READY.
func (ch *child) small() bool {
	return ch.connectivityState() == Ready && ch.tier.Condition == Usable && ch.below
}

// failing reports whether a child is READY, but calls to all of its endpoints fail.
func (ch *child) failing() bool {
	return ch.connectivityState() == Ready && ch.tier.Condition != Usable
}

// poor reports whether a child is small or failing, or reconnects after it was. So is a child that
// reconnects if calls to all of its endpoints had failed when it lost its connections.
func (ch *child) poor() bool {
	return ch.small() || ch.failing() || ch.lost && ch.hasTime()
}

// hasTime reports whether calls may wait for a child to become READY: it is IDLE, or it is
// connecting and its failover timer is running.
func (ch *child) hasTime() bool {
	return ch.connectivityState() == Idle || ch.connectivityState() == Connecting && ch.failoverTimerPending()
}

// Poor reports whether a child is small or failing, and returns its Tier.
func (c *Core) Poor(name string) (tier Tier, poor bool) {
	if child, ok := c.children[name]; ok && (child.small() || child.failing()) {
		return child.tier, true
	}
	return Tier{}, false
}

// weigh records whether too small a share of a child is READY. After a share below MinReady, the
// child needs MinReadyRecovery to count as large enough again. Otherwise, small changes would move
// calls back and forth.
func (c *Core) weigh(child *child) {
	mark := c.config.MinReady
	if child.below {
		mark = max(mark, c.config.MinReadyRecovery)
	}
	child.below = child.reported == Ready && c.config.MinReady > 0 && child.tier.ReadyPart < mark-rounding
	child.atMark = child.tier.ReadyPart+child.tier.UnprovenPart >= max(c.config.MinReady, c.config.MinReadyRecovery)-rounding
}

// rounding is more than the rounding error of a share, and less than the share of one endpoint.
const rounding = 1e-12

// triable reports whether a few trial calls could show that a child has recovered. Either it is
// half-open, or its READY share would suffice if the unproven endpoints were counted.
func (ch *child) triable() bool {
	return ch.failing() && ch.tier.Condition == HalfOpen || ch.small() && ch.atMark
}

// onTrial returns the children that get a few trial calls although they are not in use. Without
// these calls, nothing could show that they have recovered. They are the triable children above the
// child in use and, if that child is not good, also those below it that are not deactivated.
func (c *Core) onTrial(inUse *child) []string {
	var names []string
	for priority, name := range c.config.Priorities {
		child, ok := c.children[name]
		if priority > c.currentPriority && inUse != nil && inUse.good() {
			break
		}
		if ok && child != inUse && child.deactivation != running && child.triable() {
			names = append(names, name)
		}
	}
	return names
}
