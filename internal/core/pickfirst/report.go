package pickfirst

import (
	"fmt"
	"math"
	"time"
)

type change uint8

const (
	started change = iota
	failed
	rested // the backoff ended
	rose   // the connection was established
	broke  // the connection was lost, perhaps before READY was reported
)

func changeOf(before, now State) change {
	switch {
	case now == Ready:
		return rose
	case before == Ready, before == Connecting && now == Idle:
		return broke
	case now == TransientFailure:
		return failed
	case now == Idle:
		return rested
	}
	return started
}

// Report is called when the subchannel of address i has a new state. The address must still be in
// the list. at is a monotonic time with an arbitrary origin. err is set for TransientFailure.
func (c *Core) Report(at time.Duration, i int, now State, err error) []Action {
	before := c.subs[i].state
	what := changeOf(before, now)
	c.subs[i].state = now
	if now == TransientFailure {
		c.subs[i].err = err
	}
	switch what {
	case rose:
		c.since = at
	case broke:
		c.ended(i, before == Ready && at-c.since >= ShortLived)
	}
	switch c.phase {
	case PhaseIdle:
		c.reportIdle(i, what)
	case PhaseConnecting:
		c.reportConnecting(i, what)
	case PhaseReady:
		c.reportReady(i, what)
	case PhaseRetrying:
		c.reportRetrying(i, what)
	}
	return c.take()
}

// ended is called when the connection of address i has ended. stood is false if the connection was
// short-lived. After the second short-lived connection in a row, the subchannel counts as failed
// until its backoff ends.
func (c *Core) ended(i int, stood bool) {
	sub := &c.subs[i]
	if stood {
		sub.short = 0
		return
	}
	if sub.short > 0 {
		c.add(Action{Kind: Backoff, Index: i, Count: int(sub.short) - 1})
		sub.state, sub.err = TransientFailure, ErrShortLived
	}
	if sub.short < math.MaxUint8 {
		sub.short++
	}
}

func (c *Core) reportIdle(i int, what change) {
	if what == rose {
		c.connected(i)
	}
}

func (c *Core) reportConnecting(i int, what change) {
	switch what {
	case rose:
		c.connected(i)
	case broke:
		c.rest(i)
	case failed:
		c.failedInPass(i)
	}
}

func (c *Core) reportReady(i int, what change) {
	if what == broke {
		c.rest(i)
	}
}

func (c *Core) reportRetrying(i int, what change) {
	switch {
	case what == rose:
		c.connected(i)
	case what == broke:
		c.rest(i)
	case what == failed && c.passing:
		c.failedInPass(i)
	case what == failed:
		if c.left--; c.left == 0 {
			c.endRound(i)
		}
	case what == rested && !c.passing:
		c.do(Connect, i)
	}
}

// connected keeps the connected subchannel of address i, and shuts down all others.
func (c *Core) connected(i int) {
	c.held = c.phase == PhaseRetrying
	c.phase = PhaseReady
	c.settle(i)
	if !c.health {
		c.ready(i)
		return
	}
	if !c.held {
		c.publish(Connecting, noAddress, nil)
	}
	c.do(WatchHealth, i)
}

func (c *Core) ready(i int) {
	c.held = false
	c.publish(Ready, i, nil)
}

// rest is called when the connection in use has ended. The policy does not reconnect until
// ExitIdle. It requests a re-resolution, because servers close connections to make clients resolve
// their name again.
func (c *Core) rest(i int) {
	c.phase, c.held = PhaseIdle, false
	c.settle(i)
	c.do(Resolve, noAddress)
	c.publish(Idle, noAddress, nil)
}

func (c *Core) settle(i int) {
	c.do(StopTimer, noAddress)
	for j := range c.subs {
		if j != i && c.subs[j].state != None {
			c.subs[j] = subchannel{}
			c.do(Shutdown, j)
		}
	}
	c.passing, c.next = false, int32(i)
}

// Health is called when the server at address i reports its health. err is set for
// TransientFailure.
func (c *Core) Health(i int, now State, err error) []Action {
	if c.phase != PhaseReady || i != int(c.next) {
		return nil
	}
	switch now {
	case Ready:
		c.ready(i)
	case TransientFailure:
		c.publish(TransientFailure, noAddress, fmt.Errorf("the server is not healthy: %s", reason(err)))
	case Connecting:
		if !c.held {
			c.publish(Connecting, noAddress, nil)
		}
	}
	return c.take()
}
