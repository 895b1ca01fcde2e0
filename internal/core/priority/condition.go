package priority

// Condition is what a child says of the endpoints below it, beside its state: its
// outlier detection sees the results of calls, and knows of no other child.
//
// A child that is READY and not Usable, or of which too little is READY (Config.MinReady),
// is poor: it stays in use until one below it is READY and not poor, and the highest that is
// READY is in use if all of them are. Nothing that could answer is refused. One that loses
// its last connection while it is poor does not take the calls over while it connects.
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
	// ReadyPart is the part of its weight that is READY.
	ReadyPart float64
}

// Poor returns whether the child is READY and poor, and what it said that makes it so.
func (c *Core) Poor(name string) (tier Tier, poor bool) {
	if child, ok := c.children[name]; ok && child.poor() {
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
}

// rounding is more than what floating-point numbers round a part by, and less than what
// one endpoint is of as many as there may be: a child that has just as much as it should
// is not poor.
const rounding = 1e-12

// outdone returns whether a child that lost its last connection while it was poor may not be
// used, though A56 would wait for it: the first below it that has neither failed nor lost its
// connections so is READY, and answers the calls meanwhile. One that is IDLE is told to
// connect.
func (c *Core) outdone(priority int, child *child) bool {
	if !child.lost {
		return false
	}
	for _, name := range c.config.Priorities[priority+1:] {
		below, ok := c.children[name]
		if !ok || !below.lost && below.connectivityState() != TransientFailure {
			return ok && below.connectivityState() == Ready && c.waitsFor(child)
		}
	}
	return false
}

// waitsFor returns whether a poor child stays in use because of one below it: that is
// IDLE, and is told to connect, or its failover timer is pending. One that has failed is
// not waited for: the next one is looked at.
func (c *Core) waitsFor(child *child) bool {
	c.wake(child)
	return child.connectivityState() == Idle || child.failoverTimerPending()
}

// halfOpen returns the children that get a few of the calls while another one is in use:
// those that are HalfOpen above it, and below it, too, where it is poor itself, unless
// they are about to be destroyed. Without calls they could never come back.
func (c *Core) halfOpen(inUse *child) []string {
	var names []string
	for priority, name := range c.config.Priorities {
		child, ok := c.children[name]
		if priority > c.currentPriority && inUse != nil && !inUse.poor() {
			break
		}
		if ok && child != inUse && child.deactivation != running && child.poor() && child.tier.Condition == HalfOpen {
			names = append(names, name)
		}
	}
	return names
}
