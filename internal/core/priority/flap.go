package priority

import "time"

// A child flaps that fails soon after it came back. Each time its calls have to leave it,
// and each time it fails while it waits to have them back, doubles its failback delay, up
// to Config.MaxFailbackDelay. Once it has been in use for as long as that it is steady.

// failbackDelay returns how long a child must have been READY before it takes over, but
// for the jitter.
func (c *Core) failbackDelay(child *child) time.Duration {
	delay := c.config.FailbackDelay
	for i := 1; i < child.flaps && delay > 0 && delay < c.config.MaxFailbackDelay; i++ {
		delay = min(2*delay, c.config.MaxFailbackDelay)
	}
	return delay
}

// noteFlaps notes whether the choice of a priority leaves one that had the calls, and
// starts the time after which the one that is chosen is steady. What it notes of one that
// is left for a higher one, endFailback forgets.
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

// failWhileWaiting stops the failback timer of a child that is not good any more. That it
// has failed once more is noted, if it was waiting.
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
