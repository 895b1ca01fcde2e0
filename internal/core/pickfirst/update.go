package pickfirst

// Update replaces the list of addresses. from has an entry for each address of the new list, in the
// order in which they are tried: its index in the old list, or -1 for a new address. The new list
// must not contain duplicates. An empty list makes calls fail with ErrNoAddresses. An unchanged
// list has no effect.
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

// isSame reports whether the list is unchanged. If so, a running pass continues. Otherwise,
// frequent updates would begin a new pass each time, and while the first address does not respond,
// the next one would never be tried.
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
// adjusts c.next, so that it refers to the same address.
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

// empty handles an empty list: calls fail with ErrNoAddresses. After a failed pass, the phase stays
// PhaseRetrying until a connection is READY.
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

// connect begins the first pass. With again, CONNECTING is published even if it was published
// before, because a parent expects a state after an update.
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

// Fail is called with an error of the resolver. It makes calls fail with err, unless one of the
// known addresses may still work.
func (c *Core) Fail(err error) []Action {
	if len(c.subs) == 0 || c.published == TransientFailure {
		c.publish(TransientFailure, noAddress, err)
	}
	return c.take()
}

// ExitIdle begins to connect if the policy is IDLE.
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

// SetHealth sets whether READY requires a healthy server. A change takes effect with the next
// connection.
func (c *Core) SetHealth(on bool) { c.health = on }
