package priority

import "time"

// A child flaps if it fails soon after it has recovered. Its failback delay doubles each time calls
// have to leave it and each time it fails during the delay, up to Config.MaxFailbackDelay. After it
// has been in use for Config.MaxFailbackDelay, it is steady again.

// failbackDelay returns how long a child must be READY before it takes over, without the jitter.
func (c *Core) failbackDelay(child *child) time.Duration {
	delay := c.config.FailbackDelay
	for i := 1; i < child.flaps && delay > 0 && delay < c.config.MaxFailbackDelay; i++ {
		delay = min(2*delay, c.config.MaxFailbackDelay)
	}
	return delay
}

// noteFlaps counts a flap of the priority in use if that priority was good and the choice leaves
// it. It also starts the steady timer of the chosen priority. If the chosen priority is higher,
// endFailback resets the count.
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

// failWhileWaiting stops the failback timer of a child that is no longer good. If the timer was
// active, this counts as a flap.
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
