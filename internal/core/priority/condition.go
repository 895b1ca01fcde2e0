package priority

// Condition is what a child says of the endpoints below it, beside its state: its
// outlier detection sees the results of calls, and knows of no other child.
//
// Nothing that could answer is refused for it: the order of last resorts says when the calls
// go elsewhere; see orderOfLastResorts.
type Condition uint8

// The conditions.
const (
	// Usable is a child like any other: all children are in A56.
	Usable Condition = iota
	// Emptied is a child of whose endpoints none answers well.
	Emptied
	// HalfOpen is a child that was Emptied and is to show, by a few of the calls, whether
	// it answers well again.
	HalfOpen
)

// Tier is all that a child says beside its state.
type Tier struct {
	Condition Condition
	// ReadyPart is the part of its weight that is READY, UnprovenPart a further part that has
	// to show by a few of the calls whether it answers.
	ReadyPart, UnprovenPart float64
}

// The words of the order of last resorts.

// good says that the child is READY, and that nothing is wrong with it.
func (ch *child) good() bool {
	return ch.connectivityState() == Ready && ch.tier.Condition == Usable && !ch.below
}

// small says that the child is READY, and only too little of it is.
func (ch *child) small() bool {
	return ch.connectivityState() == Ready && ch.tier.Condition == Usable && ch.below
}

// failing says that the child is READY, and none of its endpoints answers well.
func (ch *child) failing() bool {
	return ch.connectivityState() == Ready && ch.tier.Condition != Usable
}

// poor says that the child is small or failing, or was when it lost its last connection, or has
// been emptied while it connects again, and has not failed since.
func (ch *child) poor() bool {
	return ch.small() || ch.failing() || ch.lost && ch.hasTime()
}

// hasTime says that the child may yet become READY: it is IDLE, or has time left to connect.
func (ch *child) hasTime() bool {
	return ch.connectivityState() == Idle || ch.connectivityState() == Connecting && ch.failoverTimerPending()
}

// Poor returns whether the child is READY and poor, and what it said that makes it so.
func (c *Core) Poor(name string) (tier Tier, poor bool) {
	if child, ok := c.children[name]; ok && (child.small() || child.failing()) {
		return child.tier, true
	}
	return Tier{}, false
}

// weigh finds whether too little of a child is READY. Whether one that was below the mark
// is above it again depends on the recovery mark, so that it does not go to and fro.
func (c *Core) weigh(child *child) {
	mark := c.config.MinReady
	if child.below {
		mark = max(mark, c.config.MinReadyRecovery)
	}
	child.below = child.reported == Ready && c.config.MinReady > 0 && child.tier.ReadyPart < mark-rounding
	child.atMark = child.tier.ReadyPart+child.tier.UnprovenPart >= max(c.config.MinReady, c.config.MinReadyRecovery)-rounding
}

// rounding is more than what floating-point numbers round a part by, and less than what
// one endpoint is of as many as there may be: a child that has just as much as it should
// is not poor.
const rounding = 1e-12

// triable says that a few calls may show that the child is well again: it is half-open, or
// would be at its mark if all of it that has to show that it answers did.
func (ch *child) triable() bool {
	return ch.failing() && ch.tier.Condition == HalfOpen || ch.small() && ch.atMark
}

// onTrial returns the children that get a few of the calls while another one is in use: those
// above it that may be well again and, where it is not good, those below it, unless they are
// about to be destroyed. Without calls they could never come back.
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
