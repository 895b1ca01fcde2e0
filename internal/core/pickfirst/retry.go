package pickfirst

import "errors"

// ResetBackoff connects the addresses that are in backoff after a failed pass, except those that
// failed with ErrShortLived.
func (c *Core) ResetBackoff() []Action {
	if c.phase != PhaseRetrying || c.inPass {
		return nil
	}
	for i := range c.subs {
		sub := &c.subs[i]
		if sub.state == TransientFailure && !errors.Is(sub.err, ErrShortLived) {
			sub.state = Idle
			c.addAction(Renew, i)
		}
	}
	return c.takeActions()
}
