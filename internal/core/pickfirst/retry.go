package pickfirst

import (
	"errors"
	"time"
)

// ResetBackoff immediately connects addresses that have been in backoff for at least that long
// after a failed pass. It leaves out those that failed with ErrShortLived. now is as in Report.
func (c *Core) ResetBackoff(now, atLeast time.Duration) []Action {
	if c.phase != PhaseRetrying || c.inPass {
		return nil
	}
	for i := range c.subs {
		sub := &c.subs[i]
		if sub.state == TransientFailure && now-sub.failedAt >= atLeast && !errors.Is(sub.err, ErrShortLived) {
			sub.state = Idle
			c.addAction(Renew, i)
		}
	}
	return c.takeActions()
}
