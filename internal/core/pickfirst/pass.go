package pickfirst

import (
	"errors"
	"fmt"
)

// begin starts a pass: each address has its turn, in order. A turn ends when the
// attempt fails or has run for AttemptDelay; attempts are not given up (A61).
func (c *Core) begin() {
	c.passing = true
	c.next, c.left = 0, int32(len(c.subs))
	for i := range c.subs {
		c.subs[i].failed = false
	}
	c.attempt()
}

// attempt ends the turn before, with its timer, and gives the next address its own.
// One that still waits for its backoff to end has failed already. The last turn has no
// timer, since nobody waits for its end.
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

// failedInPass handles a failure during a pass. It may come out of turn: attempts
// overlap, and one may have begun under an earlier list.
func (c *Core) failedInPass(i int) {
	c.fail(&c.subs[i])
	if i == int(c.next) {
		c.next++
		c.attempt()
		return
	}
	c.endIfAllFailed(i)
}

// endIfAllFailed ends the pass when every address has had its turn and has failed,
// address last as the last one.
// From then on each subchannel connects again as soon as its own backoff ends, for
// ever: gRPC-Go gives the backoff to the subchannel, so that the passes that A62
// describes cannot be kept in step (decision 9 in the project's scenarios).
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

// endRound publishes the failure and asks for re-resolution, once for as many
// failures as there are addresses (A61).
func (c *Core) endRound(last int) {
	c.left = int32(len(c.subs))
	c.publish(TransientFailure, 0, c.failure(c.subs[last].err))
	c.do(Resolve, 0)
}

func (c *Core) failure(last error) error {
	if len(c.subs) == 1 {
		return errors.New(reason(last)) // a parent may have more, and counts them
	}
	return fmt.Errorf("all %d addresses failed, the last with: %s", len(c.subs), reason(last))
}

// reason returns the text of err alone: a status in an error that wraps it would end
// calls that wait for ready. Outlier detection ejects without giving an error.
func reason(err error) string {
	if err == nil {
		return "no reason was given"
	}
	return err.Error()
}
