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
	keepsConnection := c.phase == PhaseReady && c.keepsCurrent(from)
	hadAddresses := len(c.subs) > 0
	dropped = c.replaceList(from)
	if len(c.subs) == 0 {
		c.handleEmptyList()
		return dropped, c.takeActions()
	}
	switch c.phase {
	case PhaseIdle:
		if !hadAddresses {
			c.beginFirstPass(true)
		}
	case PhaseConnecting:
		c.beginFirstPass(true)
	case PhaseReady:
		if !keepsConnection {
			c.reconnect()
		}
	case PhaseRetrying:
		c.beginPass()
	}
	return dropped, c.takeActions()
}

// An unchanged list must not begin a new pass. Otherwise, frequent updates would always begin with
// the first address, and while it does not respond, we would never try the next one.
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

func (c *Core) keepsCurrent(from []int) bool {
	for _, f := range from {
		if f == int(c.next) {
			return true
		}
	}
	return false
}

// dropped has the old indexes of the removed addresses that have a subchannel. c.next moves with
// its address.
func (c *Core) replaceList(from []int) (dropped []int) {
	old := c.subs
	nextIndex := int(c.next)
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
		if f == nextIndex {
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

func (c *Core) handleEmptyList() {
	switch {
	case c.keepsFailure:
		c.phase = PhaseRetrying
	case c.phase != PhaseRetrying:
		c.phase = PhaseIdle
	}
	c.addAction(StopTimer, noAddress)
	c.publish(TransientFailure, noAddress, ErrNoAddresses)
}

// A parent expects a state after each update: with alwaysPublish, CONNECTING is published even if
// it was the last one.
func (c *Core) beginFirstPass(alwaysPublish bool) {
	c.phase = PhaseConnecting
	if alwaysPublish {
		c.published = None
	}
	c.publish(Connecting, noAddress, nil)
	c.beginPass()
}

func (c *Core) reconnect() {
	if c.keepsFailure {
		c.phase = PhaseRetrying
		c.beginPass()
		return
	}
	c.beginFirstPass(true)
}

// Fail is called with an error of the resolver. It makes calls fail with err if there are no
// addresses, or if calls already fail. Otherwise, the addresses may still work.
func (c *Core) Fail(err error) []Action {
	if len(c.subs) == 0 || c.published == TransientFailure {
		c.publish(TransientFailure, noAddress, err)
	}
	return c.takeActions()
}

// ExitIdle makes the policy connect if it is IDLE.
func (c *Core) ExitIdle() []Action {
	if c.phase == PhaseIdle && len(c.subs) > 0 {
		c.beginFirstPass(false)
	}
	return c.takeActions()
}

func (c *Core) TimerFired() []Action {
	if c.inPass && int(c.next) < len(c.subs) {
		c.next++
		c.tryNext()
	}
	return c.takeActions()
}

// SetHealth sets whether READY requires a healthy server. A change takes effect with the next
// connection.
func (c *Core) SetHealth(require bool) { c.requireHealth = require }
