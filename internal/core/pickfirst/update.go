package pickfirst

// Update replaces the list of addresses. The new list is in the order in which addresses are tried,
// without duplicates. from contains, for each new address, its index in the old list, or -1. An
// empty list makes calls fail with ErrNoAddresses. An unchanged list has no effect.
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

// isSame reports whether the list is unchanged, so that a running pass continues. If frequent
// updates began a new pass each time, an address that does not respond would keep the next one from
// being tried.
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

func (c *Core) keeps(from []int) bool {
	for _, f := range from {
		if f == int(c.next) {
			return true
		}
	}
	return false
}

// replace replaces the list. It returns the indexes of removed addresses with a subchannel, and
// sets c.next to the new index of its address.
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

// empty is called when the list is empty. It drops the connection. TRANSIENT_FAILURE stays until a
// connection is READY.
func (c *Core) empty() {
	switch {
	case c.held:
		c.phase = PhaseRetrying
	case c.phase != PhaseRetrying:
		c.phase = PhaseIdle
	}
	c.do(StopTimer, noAddress)
	c.publish(TransientFailure, noAddress, ErrNoAddresses)
}

// connect begins the first pass. again publishes CONNECTING even if it was the last state, because
// a parent expects a state after an update.
func (c *Core) connect(again bool) {
	c.phase = PhaseConnecting
	if again {
		c.published = None
	}
	c.publish(Connecting, noAddress, nil)
	c.begin()
}

func (c *Core) reconnect() {
	if c.held { // a pass has failed, and no connection has been READY since
		c.phase = PhaseRetrying
		c.begin()
		return
	}
	c.connect(true)
}

// Fail is called with an error of the resolver. Calls fail with err unless a known address may
// still work.
func (c *Core) Fail(err error) []Action {
	if len(c.subs) == 0 || c.published == TransientFailure {
		c.publish(TransientFailure, noAddress, err)
	}
	return c.take()
}

// ExitIdle connects an IDLE policy.
func (c *Core) ExitIdle() []Action {
	if c.phase == PhaseIdle && len(c.subs) > 0 {
		c.connect(false)
	}
	return c.take()
}

// TimerFired is called when the timer of StartTimer fires.
func (c *Core) TimerFired() []Action {
	if c.passing && int(c.next) < len(c.subs) {
		c.next++
		c.attempt()
	}
	return c.take()
}

// SetHealth sets whether READY requires a healthy server. It takes effect with the next connection.
func (c *Core) SetHealth(on bool) { c.health = on }
