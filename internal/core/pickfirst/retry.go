package pickfirst

import "errors"

// ResetBackoff retries all addresses that are in backoff after a failed pass. It does not retry an
// address with ErrShortLived, because its backoff protects a server that accepts connections and
// crashes.
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
