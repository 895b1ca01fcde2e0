package priority

import "time"

// A child flaps if it fails soon after it has recovered. A flap is counted when calls have to leave
// the child, and when it fails during its failback delay. With each flap the failback delay
// doubles, up to Config.MaxFailbackDelay. When the child has been in use for
// Config.MaxFailbackDelay, it is steady, and the count begins again.

// failbackDelay returns how long a child must be READY before it takes over, without the jitter.
func (c *Core) failbackDelay(child *child) time.Duration {
	delay := c.config.FailbackDelay
	for i := 1; i < child.flaps && delay > 0 && delay < c.config.MaxFailbackDelay; i++ {
		delay = min(2*delay, c.config.MaxFailbackDelay)
	}
	return delay
}

// noteFlaps counts a flap if the choice leaves the priority in use and that priority was good. For
// the chosen priority, it starts the steady timer. If the choice goes to a higher priority,
// endFailback clears the count.
func (c *Core) noteFlaps(priority int) {
	if previous := c.currentPriority; previous != none && previous != priority {
		if left, ok := c.children[c.config.Priorities[previous]]; ok {
			if left.served {
				c.flap(left)
			}
			left.served = false
		}
	}
	child := c.children[c.config.Priorities[priority]]
	child.served = child.served || child.good()
	if child.served && child.flaps > 0 && child.steady == stopped && c.config.MaxFailbackDelay > 0 {
		child.steady = running
		c.start(StartSteady, child, c.config.MaxFailbackDelay)
	}
}

// failWhileWaiting is called when a child is not good. If the failback timer is running or has
// fired, it is stopped, and a flap is counted.
func (c *Core) failWhileWaiting(child *child) {
	if child.failback != stopped {
		c.flap(child)
	}
	c.stopFailback(child)
}

func (c *Core) flap(child *child) {
	c.stopSteady(child)
	if c.config.MaxFailbackDelay > 0 {
		child.flaps++
	}
}

func (c *Core) forgetFlaps(child *child) {
	c.stopSteady(child)
	child.flaps, child.served = 0, false
}

func (c *Core) stopSteady(child *child) {
	if child.steady == running {
		c.do(StopSteady, child.name)
	}
	child.steady = stopped
}
