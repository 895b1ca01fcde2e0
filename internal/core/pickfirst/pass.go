package pickfirst

import (
	"errors"
	"fmt"
)

// beginPass starts a pass, in which each address is tried once, in order. The next address is tried
// when the current attempt has failed, or after AttemptDelay. In the latter case, the current
// attempt continues (A61).
func (c *Core) beginPass() {
	c.inPass = true
	c.next, c.failuresLeft = 0, int32(len(c.subs))
	for i := range c.subs {
		c.subs[i].failed = false
	}
	c.tryNext()
}

// tryNext tries the next address. An address in backoff counts as failed immediately. For the last
// address, no timer is started, because no address follows.
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

// failedInPass handles the failure of address i in a pass. Because attempts overlap, address i is
// not always the one that was tried last.
func (c *Core) failedInPass(i int) {
	c.markFailed(&c.subs[i])
	if i == int(c.next) {
		c.next++
		c.tryNext()
		return
	}
	c.endIfAllFailed(i)
}

// endIfAllFailed ends the pass if all addresses have been tried and have failed. last is the
// address that failed last. After the pass, each subchannel connects again when its own backoff
// ends. Unlike in A62, no pass follows, because grpc-go has a backoff for each subchannel.
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

// endRound publishes the failure and requests a re-resolution. It is called when a pass has failed,
// and then each time that len(c.subs) further attempts have failed (A61).
func (c *Core) endRound(last int) {
	c.failuresLeft = int32(len(c.subs))
	c.publish(TransientFailure, noAddress, c.passError(c.subs[last].err))
	c.addAction(Resolve, noAddress)
}

func (c *Core) passError(last error) error {
	if len(c.subs) == 1 {
		return errors.New(reason(last)) // a parent with several endpoints adds their number
	}
	return fmt.Errorf("all %d addresses failed, the last with: %s", len(c.subs), reason(last))
}

// reason returns the text of err, which is nil if outlier detection has ejected the endpoint. Calls
// do not get err itself, because a status error would also fail calls that wait for ready.
func reason(err error) string {
	if err == nil {
		return "no reason was given"
	}
	return err.Error()
}
