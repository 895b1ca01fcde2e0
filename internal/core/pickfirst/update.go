package pickfirst

// Update replaces the list of addresses. For each address of the new list, in the order in which we
// try them, from has its index in the old list, or -1 if it's new. There must be no duplicates.
// With an empty list, calls fail with ErrNoAddresses. If the list hasn't changed, Update does
// nothing.
//
// Before executing the actions, the caller must shut down the subchannels of the old addresses in
// dropped.
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
			c.beginFirstPass()
		}
	case PhaseConnecting:
		c.beginFirstPass()
	case PhaseReady:
		if !keepsConnection {
			c.reconnect()
		}
	case PhaseRetrying:
		c.beginPass()
	}
	return dropped, c.takeActions()
}

// isSame returns true if the list hasn't changed, in which case we can't start a new pass. With
// frequent updates, we'd keep starting over at the first address, and if that one doesn't respond,
// we'd never get to the second.
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

func (c *Core) replaceList(from []int) (dropped []int) {
	old := c.subs
	nextIndex := int(c.next)
	c.subs = nil
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

// beginFirstPass publishes CONNECTING even if that's what we published last, because parents expect
// a state after each update.
func (c *Core) beginFirstPass() {
	c.phase, c.published = PhaseConnecting, None
	c.publish(Connecting, noAddress, nil)
	c.beginPass()
}

func (c *Core) reconnect() {
	if c.keepsFailure {
		c.phase = PhaseRetrying
		c.beginPass()
		return
	}
	c.beginFirstPass()
}

// Fail passes on an error of the resolver. If there are no addresses or calls fail already, they'll
// fail with err. Otherwise we ignore it, since the addresses may still work.
func (c *Core) Fail(err error) []Action {
	if len(c.subs) == 0 || c.published == TransientFailure {
		c.publish(TransientFailure, noAddress, err)
	}
	return c.takeActions()
}

func (c *Core) ExitIdle() []Action {
	if c.phase == PhaseIdle && len(c.subs) > 0 {
		c.beginFirstPass()
	}
	return c.takeActions()
}

func (c *Core) TimerFired() []Action {
	c.next++
	c.tryNext()
	return c.takeActions()
}

// SetHealth sets whether we need a healthy server to be READY. It applies from the next connection
// on.
func (c *Core) SetHealth(require bool) { c.requireHealth = require }
