package priority

// Condition is a child's report on the results of its calls, which the child's outlier detection
// observes. The child takes calls in any Condition. The core decides when calls go to another
// child; see orderOfLastResorts.
type Condition uint8

const (
	// Usable means that nothing is wrong. All children in A56 are Usable.
	Usable Condition = iota
	// Emptied means that none of the child's endpoints responds well.
	Emptied
	// HalfOpen means that the child was Emptied and must show with a few calls whether it responds
	// well again.
	HalfOpen
)

// Tier is a child's report beyond its state.
type Tier struct {
	Condition Condition
	// ReadyPart is the READY share of the child's weight. UnprovenPart is a further share that must
	// show with a few calls whether it responds.
	ReadyPart, UnprovenPart float64
}

// The following methods define the terms of the order of last resorts.

// good reports whether the child is READY and nothing is wrong with it.
func (ch *child) good() bool {
	return ch.connectivityState() == Ready && ch.tier.Condition == Usable && !ch.below
}

// small reports whether the only problem of a READY child is that too small a share of it is READY.
func (ch *child) small() bool {
	return ch.connectivityState() == Ready && ch.tier.Condition == Usable && ch.below
}

// failing reports whether the child is READY and none of its endpoints responds well.
func (ch *child) failing() bool {
	return ch.connectivityState() == Ready && ch.tier.Condition != Usable
}

// poor reports whether the child is small or failing, or is reconnecting after it was small or
// failing. A child that is emptied while it reconnects is also poor.
func (ch *child) poor() bool {
	return ch.small() || ch.failing() || ch.lost && ch.hasTime()
}

// hasTime reports whether the child may still become READY: it is IDLE, or connecting with its
// failover timer pending.
func (ch *child) hasTime() bool {
	return ch.connectivityState() == Idle || ch.connectivityState() == Connecting && ch.failoverTimerPending()
}

// Poor reports whether the child is small or failing, and returns its Tier.
func (c *Core) Poor(name string) (tier Tier, poor bool) {
	if child, ok := c.children[name]; ok && (child.small() || child.failing()) {
		return child.tier, true
	}
	return Tier{}, false
}

// weigh records whether the READY share of a child is too small. Once the share is below MinReady,
// it must reach MinReadyRecovery, so that the child does not alternate between the two conditions.
func (c *Core) weigh(child *child) {
	mark := c.config.MinReady
	if child.below {
		mark = max(mark, c.config.MinReadyRecovery)
	}
	child.below = child.reported == Ready && c.config.MinReady > 0 && child.tier.ReadyPart < mark-rounding
	child.atMark = child.tier.ReadyPart+child.tier.UnprovenPart >= max(c.config.MinReady, c.config.MinReadyRecovery)-rounding
}

// rounding is larger than the rounding error of a share, and smaller than the share of one
// endpoint.
const rounding = 1e-12

// triable reports whether a few calls may show that the child has recovered. This is the case if it
// is half-open, or if its READY share would be large enough with its unproven weight.
func (ch *child) triable() bool {
	return ch.failing() && ch.tier.Condition == HalfOpen || ch.small() && ch.atMark
}

// onTrial returns the children that receive a few calls while another child is in use. Without
// these calls they could not recover. They are the triable children above the child in use and, if
// that child is not good, also the triable children below it that are not deactivated.
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
