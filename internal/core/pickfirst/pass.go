package pickfirst

import (
	"errors"
	"fmt"
)

// begin starts a pass, in which each address has its turn in order. A turn ends when the attempt
// fails or has run for AttemptDelay. In the latter case the attempt continues (A61).
func (c *Core) begin() {
	c.passing = true
	c.next, c.left = 0, int32(len(c.subs))
	for i := range c.subs {
		c.subs[i].failed = false
	}
	c.attempt()
}

// attempt starts the turn of the next address. An address that is in backoff counts as failed. The
// last turn needs no timer, because no further address is waiting for its end.
func (c *Core) attempt() {
	c.do(StopTimer, 0)
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
			c.do(StartTimer, 0)
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

// failedInPass handles a failure during a pass. Attempts overlap, so the failure may belong to an
// earlier turn.
func (c *Core) failedInPass(i int) {
	c.fail(&c.subs[i])
	if i == int(c.next) {
		c.next++
		c.attempt()
		return
	}
	c.endIfAllFailed(i)
}

// endIfAllFailed ends the pass if each address has had its turn and has failed. last is the address
// that failed last. From then on, each subchannel connects again when its own backoff ends. A62's
// later passes are not possible, because grpc-go keeps the backoff in the subchannel (decision 9 in
// docs/scenarios.md).
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

// endRound publishes the failure and requests re-resolution. A round consists of as many failures
// as there are addresses (A61).
func (c *Core) endRound(last int) {
	c.left = int32(len(c.subs))
	c.publish(TransientFailure, 0, c.failure(c.subs[last].err))
	c.do(Resolve, 0)
}

func (c *Core) failure(last error) error {
	if len(c.subs) == 1 {
		return errors.New(reason(last)) // a parent with several endpoints adds the number of endpoints
	}
	return fmt.Errorf("all %d addresses failed, the last with: %s", len(c.subs), reason(last))
}

// reason returns only the text of err, because an error that wraps a status error would fail
// wait-for-ready calls. err is nil after an ejection by outlier detection.
func reason(err error) string {
	if err == nil {
		return "no reason was given"
	}
	return err.Error()
}
