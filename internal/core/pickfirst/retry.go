package pickfirst

import "errors"

// ResetBackoff has the addresses tried again at once that wait for a backoff after a failed
// pass. An address that accepts connections and ends them waits for another reason, and goes on
// waiting.
func (c *Core) ResetBackoff() []Action {
	if c.phase != PhaseRetrying || c.passing {
		return nil
	}
	for i := range c.subs {
		sub := &c.subs[i]
		if sub.state == TransientFailure && !errors.Is(sub.err, ErrShortLived) {
			sub.state = Idle
			c.do(Renew, i)
		}
	}
	return c.take()
}
