package pickfirst

// Update replaces the list of addresses. The new list is in the order in which the addresses are
// tried and has no duplicates. For each of its addresses, from contains the index in the old list,
// or -1. With an empty list, calls fail with ErrNoAddresses. An unchanged list has no effect.
//
// The caller must shut down the subchannels of the old addresses in dropped before it executes the
// actions.
func (c *Core) Update(from []int) (dropped []int, actions []Action) {
	if c.isSame(from) {
		return nil, nil
	}
	connected := c.phase == PhaseReady && c.keeps(from)
	had := len(c.subs) > 0
	dropped = c.replace(from)
	if len(c.subs) == 0 {
		c.empty()
		return dropped, c.take()
	}
	switch c.phase {
	case PhaseIdle:
		if !had {
			c.connect(true)
		}
	case PhaseConnecting:
		c.connect(true)
	case PhaseReady:
		if !connected {
			c.reconnect()
		}
	case PhaseRetrying:
		c.begin()
	}
	return dropped, c.take()
}

// isSame reports whether the list has not changed, in which case the current pass continues.
// Updates may be more frequent than AttemptDelay. If each of them restarted the pass, an
// unresponsive address would block the next one forever.
func (c *Core) isSame(from []int) bool {
	if len(from) != len(c.subs) {
		return false
	}
	for i, f := range from {
		if f != i {
			return false
		}
	}
	return len(from) > 0
}

// keeps reports whether the list still contains the connected address, c.next.
func (c *Core) keeps(from []int) bool {
	for _, f := range from {
		if f == int(c.next) {
			return true
		}
	}
	return false
}

// replace replaces the list and returns the indexes of the dropped addresses that have a
// subchannel. c.next follows its address.
func (c *Core) replace(from []int) (dropped []int) {
	old := c.subs
	turn := int(c.next)
	c.subs, c.next = nil, 0
	if len(from) > 0 {
		c.subs = make([]subchannel, len(from))
	}
	for i, f := range from {
		if f < 0 {
			continue
		}
		c.subs[i] = old[f]
		old[f].state = None
		if f == turn {
			c.next = int32(i)
		}
	}
	for f := range old {
		if old[f].state != None {
			dropped = append(dropped, f)
		}
	}
	return dropped
}

// empty handles an empty list. It drops the connection. TRANSIENT_FAILURE stays sticky.
func (c *Core) empty() {
	c.passing = false
	if c.held {
		c.phase, c.held = PhaseRetrying, false
	}
	if c.phase != PhaseRetrying {
		c.phase = PhaseIdle
	}
	c.do(StopTimer, 0)
	c.publish(TransientFailure, 0, ErrNoAddresses)
}

// connect starts a pass if no pass has failed before. If again is set, CONNECTING is published even
// if it is the current state, because a parent expects a state after an update.
func (c *Core) connect(again bool) {
	c.phase = PhaseConnecting
	if again {
		c.published = None
	}
	c.publish(Connecting, 0, nil)
	c.begin()
}

// reconnect starts a pass because the connected address is no longer in the list.
func (c *Core) reconnect() {
	if c.held { // a pass has failed, and READY has not been published since
		c.held = false
		c.phase = PhaseRetrying
		c.begin()
		return
	}
	c.connect(true)
}

// Fail makes calls fail with err, an error of the resolver, unless the known addresses may still
// serve calls.
func (c *Core) Fail(err error) []Action {
	if len(c.subs) == 0 || c.published == TransientFailure {
		c.publish(TransientFailure, 0, err)
	}
	return c.take()
}

// ExitIdle connects if the policy is idle.
func (c *Core) ExitIdle() []Action {
	if c.phase == PhaseIdle && len(c.subs) > 0 {
		c.connect(false)
	}
	return c.take()
}

// TimerFired handles the end of the timer.
func (c *Core) TimerFired() []Action {
	if c.passing && int(c.next) < len(c.subs) {
		c.next++
		c.attempt()
	}
	return c.take()
}

// SetHealth sets whether READY waits for the server's health. It takes effect with the next
// connection.
func (c *Core) SetHealth(on bool) { c.health = on }
