package pickfirst

import (
	"errors"
	"time"
)

// ResetBackoff connects addresses right away if they've been in backoff since a failed pass for at
// least that long. It skips those that failed with ErrShortLived. now is as in Report.
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
