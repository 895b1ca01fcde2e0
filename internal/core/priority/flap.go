package priority

import "time"

// A child flaps if it fails soon after it has recovered. A flap is counted when calls have to leave
// the child, and when the child fails during its failback delay. With each flap the failback delay
// doubles, up to Config.MaxFailbackDelay. After a child has been in use for
// Config.MaxFailbackDelay, it is steady, and its flaps are forgotten.

func (c *Core) failbackDelay(child *child) time.Duration {
	delay := c.config.FailbackDelay
	for i := 1; i < child.flaps && delay > 0 && delay < c.config.MaxFailbackDelay; i++ {
		delay = min(2*delay, c.config.MaxFailbackDelay)
	}
	return delay
}

// noteFlaps is called when a priority is chosen. If the previous priority was good while it was in
// use, noteFlaps counts a flap of that priority. If the chosen priority has flapped, noteFlaps
// starts its steady timer. If the chosen priority is higher than the previous one, endFailback
// resets the number of flaps of the previous one.
func (c *Core) noteFlaps(priority int) {
	if previous := c.currentPriority; previous != none && previous != priority {
		if previousChild, ok := c.children[c.config.Priorities[previous]]; ok {
			if previousChild.wasGoodInUse {
				c.flap(previousChild)
			}
			previousChild.wasGoodInUse = false
		}
	}
	child := c.children[c.config.Priorities[priority]]
	child.wasGoodInUse = child.wasGoodInUse || child.isGood()
	if child.wasGoodInUse && child.flaps > 0 && child.steady == stopped && c.config.MaxFailbackDelay > 0 {
		child.steady = running
		c.addTimer(StartSteady, child, c.config.MaxFailbackDelay)
	}
}

// failWhileWaiting is called when a child is not good. If the child was waiting for the end of its
// failback delay, it stops the timer and counts a flap.
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
	child.flaps, child.wasGoodInUse = 0, false
}

func (c *Core) stopSteady(child *child) {
	if child.steady == running {
		c.addAction(StopSteady, child.name)
	}
	child.steady = stopped
}
