package pickfirst

import (
	"errors"
	"fmt"
)

// begin starts a pass, in which each address is tried once, in order. The next address is tried
// when the attempt has failed, or after AttemptDelay. The attempt itself continues after
// AttemptDelay (A61).
func (c *Core) begin() {
	c.passing = true
	c.next, c.left = 0, int32(len(c.subs))
	for i := range c.subs {
		c.subs[i].failed = false
	}
	c.attempt()
}

// attempt tries the next address. An address in backoff counts as failed at once. The last address
// needs no timer, because none follows.
func (c *Core) attempt() {
	c.do(StopTimer, noAddress)
	for ; int(c.next) < len(c.subs); c.next++ {
		sub := &c.subs[c.next]
		switch sub.state {
		case TransientFailure:
			c.fail(sub)
			continue
		case None, Idle:
			sub.state = Idle
			c.do(Connect, int(c.next))
		}
		if int(c.next)+1 < len(c.subs) {
			c.do(StartTimer, noAddress)
		}
		return
	}
	c.endIfAllFailed(len(c.subs) - 1)
}

func (c *Core) fail(sub *subchannel) {
	if !sub.failed {
		sub.failed = true
		c.left--
	}
}

// failedInPass handles the failure of address i in a pass. As attempts overlap, i need not be the
// address that was tried last.
func (c *Core) failedInPass(i int) {
	c.fail(&c.subs[i])
	if i == int(c.next) {
		c.next++
		c.attempt()
		return
	}
	c.endIfAllFailed(i)
}

// endIfAllFailed ends the pass if all addresses have been tried and have failed. last is the
// address that failed last. After the pass, each subchannel connects again when its own backoff
// ends. Unlike in A62, no pass follows, because grpc-go has a backoff for each subchannel (decision
// 9 in docs/scenarios.md).
func (c *Core) endIfAllFailed(last int) {
	if int(c.next) < len(c.subs) || c.left > 0 {
		return
	}
	c.passing = false
	c.phase = PhaseRetrying
	c.endRound(last)
	for i := range c.subs {
		if c.subs[i].state == Idle {
			c.do(Connect, i)
		}
	}
}

// endRound publishes the failure and requests a re-resolution. It is called when a pass has failed,
// and then each time that len(c.subs) further attempts have failed (A61).
func (c *Core) endRound(last int) {
	c.left = int32(len(c.subs))
	c.publish(TransientFailure, noAddress, c.failure(c.subs[last].err))
	c.do(Resolve, noAddress)
}

func (c *Core) failure(last error) error {
	if len(c.subs) == 1 {
		return errors.New(reason(last)) // a policy that uses pick_first for several endpoints adds how many there are
	}
	return fmt.Errorf("all %d addresses failed, the last with: %s", len(c.subs), reason(last))
}

// reason returns the text of err. err itself is not used, because a status error would also fail
// calls that wait for ready. err is nil if outlier detection has ejected the endpoint.
func reason(err error) string {
	if err == nil {
		return "no reason was given"
	}
	return err.Error()
}
