package pickfirst

import (
	"fmt"
	"time"
)

type transition uint8

const (
	attemptStarted transition = iota
	attemptFailed
	backoffEnded
	connectionMade
	connectionLost // this may come before the report of READY
)

func transitionOf(before, after State) transition {
	switch {
	case after == Ready:
		return connectionMade
	case before == Ready, before == Connecting && after == Idle:
		return connectionLost
	case after == TransientFailure:
		return attemptFailed
	case after == Idle:
		return backoffEnded
	}
	return attemptStarted
}

// Report is called when the subchannel of address i changes its state. The address must still be in
// the list. now is a monotonic time with an arbitrary origin. For TransientFailure, err says why
// the attempt failed; otherwise it's nil.
func (c *Core) Report(now time.Duration, i int, state State, err error) []Action {
	before := c.subs[i].state
	t := transitionOf(before, state)
	c.subs[i].state = state
	if state == TransientFailure {
		c.subs[i].err, c.subs[i].failedAt = err, now
	}
	switch t {
	case connectionMade:
		c.connectedAt = now
		if c.subs[i].shortLivedCount > 0 {
			c.subs[i].calls = callsCounted
		}
	case connectionLost:
		c.connectionEnded(i, before == Ready && now-c.connectedAt >= ShortLived)
	}
	switch c.phase {
	case PhaseIdle:
		if t == connectionMade {
			c.connected(i)
		}
	case PhaseConnecting:
		c.reportConnecting(i, t)
	case PhaseReady:
		if t == connectionLost {
			c.becomeIdle(i)
		}
	case PhaseRetrying:
		c.reportRetrying(i, t)
	}
	return c.takeActions()
}

// connectionEnded counts short-lived connections. After two in a row, we treat the subchannel as
// failed until its backoff ends.
//
// What complicates this is that gRPC reports the end of a connection while calls on it are still in
// flight, e.g. for minutes after a GOAWAY. Until those calls are done, we can't tell, so we
// reconnect as usual. If it turns out that we should have backed off, we do so after the next
// connection.
func (c *Core) connectionEnded(i int, longLived bool) {
	sub := &c.subs[i]
	calls := sub.calls
	sub.calls = callsUnknown
	switch {
	case longLived || calls == callsAnswered:
		sub.shortLivedCount, sub.owesBackoff = 0, false
	case calls == callsUnknown:
		if sub.shortLivedCount++; sub.shortLivedCount > 1 {
			c.backOff(i, int(sub.shortLivedCount))
		}
	default:
		c.addAction(AwaitCalls, i)
		if sub.owesBackoff {
			c.backOff(i, int(sub.shortLivedCount)+1)
		}
	}
}

func (c *Core) backOff(i int, shortLived int) {
	sub := &c.subs[i]
	sub.state, sub.err, sub.owesBackoff = TransientFailure, ErrShortLived, false
	c.appendAction(Action{Kind: Backoff, Index: i, Count: shortLived - 2})
}

// Answered is called when the first counted call on the current connection of address i gets a
// response. We publish another picker, which doesn't count calls.
func (c *Core) Answered(i int) []Action {
	c.subs[i].calls = callsAnswered
	if c.published == Ready {
		c.published = None
		c.publishReady(i)
	}
	return c.takeActions()
}

// CallsEnded is called in response to AwaitCalls. answered is true if any call on the lost
// connection got a response.
func (c *Core) CallsEnded(i int, answered bool) []Action {
	sub := &c.subs[i]
	if answered {
		sub.shortLivedCount, sub.owesBackoff = 0, false
		return nil
	}
	if sub.shortLivedCount++; sub.shortLivedCount > 1 {
		sub.owesBackoff = true
		if c.phase == PhaseIdle && sub.state == Idle {
			c.backOff(i, int(sub.shortLivedCount))
		}
	}
	return c.takeActions()
}

func (c *Core) reportConnecting(i int, t transition) {
	switch t {
	case connectionMade:
		c.connected(i)
	case connectionLost:
		c.becomeIdle(i)
	case attemptFailed:
		c.failedInPass(i)
	}
}

func (c *Core) reportRetrying(i int, t transition) {
	switch {
	case t == connectionMade:
		c.connected(i)
	case t == connectionLost:
		c.becomeIdle(i)
	case t == attemptFailed && c.inPass:
		c.failedInPass(i)
	case t == attemptFailed:
		if c.failuresLeft--; c.failuresLeft == 0 {
			c.endRound(i)
		}
	case t == backoffEnded && !c.inPass:
		c.addAction(Connect, i)
	}
}

func (c *Core) connected(i int) {
	c.keepsFailure = c.phase == PhaseRetrying
	c.phase = PhaseReady
	c.shutdownOthers(i)
	if !c.requireHealth {
		c.publishReady(i)
		return
	}
	if !c.keepsFailure {
		c.publish(Connecting, noAddress, nil)
	}
	c.addAction(WatchHealth, i)
}

func (c *Core) publishReady(i int) {
	c.keepsFailure = false
	c.publish(Ready, i, nil)
}

// becomeIdle doesn't reconnect; that has to wait for ExitIdle. It does resolve again though,
// because servers close connections to make their clients do that.
func (c *Core) becomeIdle(i int) {
	c.phase, c.keepsFailure = PhaseIdle, false
	c.shutdownOthers(i)
	c.addAction(Resolve, noAddress)
	c.publish(Idle, noAddress, nil)
}

func (c *Core) shutdownOthers(i int) {
	c.addAction(StopTimer, noAddress)
	for j := range c.subs {
		if j != i && c.subs[j].state != None {
			c.subs[j] = subchannel{}
			c.addAction(Shutdown, j)
		}
	}
	c.next = int32(i)
}

// Health is called when the server at address i reports its health as a connectivity state. For
// TransientFailure, err says why; otherwise it's nil.
func (c *Core) Health(i int, state State, err error) []Action {
	if c.phase != PhaseReady || i != int(c.next) {
		return nil
	}
	switch state {
	case Ready:
		c.publishReady(i)
	case TransientFailure:
		c.publish(TransientFailure, noAddress, fmt.Errorf("the server is not healthy: %s", reason(err)))
	case Connecting:
		if !c.keepsFailure {
			c.publish(Connecting, noAddress, nil)
		}
	}
	return c.takeActions()
}
