package priority

// Condition describes how the calls of a child end. The child's outlier detection reports it. A
// child can receive calls in any Condition; orderOfLastResorts decides whether they should go to
// another child.
type Condition uint8

const (
	// Usable means that calls succeed, as far as is known. In A56, all children are Usable.
	Usable Condition = iota
	// Emptied means that calls to all endpoints of the child fail.
	Emptied
	// HalfOpen means that the child was Emptied, and that a few calls must show whether it has
	// recovered.
	HalfOpen
)

// Tier is what a child reports in addition to its connectivity state.
type Tier struct {
	Condition Condition
	// ReadyPart is the share of the child's weight that is READY. UnprovenPart is a further share
	// that is READY after an ejection; a few calls must show whether its endpoints have recovered.
	ReadyPart, UnprovenPart float64
}

// The following methods define good, small, failing and poor, the terms of orderOfLastResorts.

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

// poor reports whether a child is small or failing, or reconnects after it was. A child whose
// endpoints all failed calls before it lost its connections is poor, too.
func (ch *child) poor() bool {
	return ch.small() || ch.failing() || ch.lost && ch.hasTime()
}

// hasTime reports whether a child may still become READY: it is IDLE, or it is connecting and its
// failover timer has not fired.
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

// weigh records whether too small a share of a child is READY. Once the share has been below
// MinReady, it must reach MinReadyRecovery, so that small changes do not move calls back and forth.
func (c *Core) weigh(child *child) {
	mark := c.config.MinReady
	if child.below {
		mark = max(mark, c.config.MinReadyRecovery)
	}
	child.below = child.reported == Ready && c.config.MinReady > 0 && child.tier.ReadyPart < mark-rounding
	child.atMark = child.tier.ReadyPart+child.tier.UnprovenPart >= max(c.config.MinReady, c.config.MinReadyRecovery)-rounding
}

// rounding is more than a rounding error, and less than the share of one endpoint.
const rounding = 1e-12

// triable reports whether a few calls can show that a child has recovered. This is so if it is
// half-open, or if its READY share would suffice with the endpoints that have not answered a call
// since their ejection.
func (ch *child) triable() bool {
	return ch.failing() && ch.tier.Condition == HalfOpen || ch.small() && ch.atMark
}

// onTrial returns the children that get a few calls although they are not in use. Without these
// calls, they could never recover. They are the triable children above the child in use and, if
// that child is not good, also those below it that are not deactivated.
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
