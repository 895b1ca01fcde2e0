package pickfirst

import (
	"errors"
	"fmt"
)

// beginPass starts a pass, in which we try each address once, in order. We move on to the next one
// when the current attempt fails. We also move on after AttemptDelay, but then the current attempt
// continues (A61).
func (c *Core) beginPass() {
	c.inPass = true
	c.next, c.failuresLeft = 0, int32(len(c.subs))
	for i := range c.subs {
		c.subs[i].failed = false
	}
	c.tryNext()
}

// tryNext skips addresses that are in backoff; those count as failed. For the last address, we
// don't need a timer.
func (c *Core) tryNext() {
	c.addAction(StopTimer, noAddress)
	for ; int(c.next) < len(c.subs); c.next++ {
		sub := &c.subs[c.next]
		switch sub.state {
		case TransientFailure:
			c.markFailed(sub)
			continue
		case None, Idle:
			sub.state = Idle
			c.addAction(Connect, int(c.next))
		}
		if int(c.next)+1 < len(c.subs) {
			c.addAction(StartTimer, noAddress)
		}
		return
	}
	c.endIfAllFailed(len(c.subs) - 1)
}

func (c *Core) markFailed(sub *subchannel) {
	if !sub.failed {
		sub.failed = true
		c.failuresLeft--
	}
}

// failedInPass is called when an attempt has failed. Since attempts overlap, that's not always the
// address we tried last.
func (c *Core) failedInPass(i int) {
	c.markFailed(&c.subs[i])
	if i == int(c.next) {
		c.next++
		c.tryNext()
		return
	}
	c.endIfAllFailed(i)
}

// endIfAllFailed ends the pass if there's nothing left to try. From then on, each subchannel
// reconnects when its own backoff ends, like in grpc-go. A62 would have us make another pass
// instead.
func (c *Core) endIfAllFailed(last int) {
	if int(c.next) < len(c.subs) || c.failuresLeft > 0 {
		return
	}
	c.inPass = false
	c.phase = PhaseRetrying
	c.endRound(last)
	for i := range c.subs {
		if c.subs[i].state == Idle {
			c.addAction(Connect, i)
		}
	}
}

// endRound is called after each round of failures. The first round is the pass that failed, and
// after that, every len(c.subs) failures make a round (A61).
func (c *Core) endRound(last int) {
	c.failuresLeft = int32(len(c.subs))
	c.publish(TransientFailure, noAddress, c.passError(c.subs[last].err))
	c.addAction(Resolve, noAddress)
}

func (c *Core) passError(last error) error {
	if len(c.subs) == 1 {
		return errors.New(reason(last)) // with several endpoints, the parent adds their number
	}
	return fmt.Errorf("all %d addresses failed, the last with: %s", len(c.subs), reason(last))
}

// reason only returns the text of err, because a status error would also fail calls that wait for
// ready. err is nil if outlier detection has ejected the endpoint.
func reason(err error) string {
	if err == nil {
		return "no reason was given"
	}
	return err.Error()
}
