package pickfirst

// Update gives the core a new list of addresses, as long as from, in the order in
// which they are to be tried and without duplicates: from[i] is where address i was
// in the list before, and -1 for a new one. An empty list fails calls with
// ErrNoAddresses, and the same list again changes nothing.
//
// The subchannels of the old list's addresses in dropped are to be shut down, which
// comes before the actions.
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

// isSame returns whether the list has not changed. Then a pass goes on where it is.
// Endpoints that share a resolver are updated for each other's sake, maybe more often
// than every AttemptDelay: if each update began the pass anew, an address that does not
// answer would hold up the next one for ever.
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

// keeps returns whether the list still has the connected address, which c.next is.
func (c *Core) keeps(from []int) bool {
	for _, f := range from {
		if f == int(c.next) {
			return true
		}
	}
	return false
}

// replace replaces the list and returns those of the old one whose subchannels are
// to be shut down. The turn stays with the connected address, if it is kept.
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

// empty handles an empty list. A connection is given up; TRANSIENT_FAILURE stays
// sticky where it was.
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

// connect starts a pass from a phase in which no pass had failed. With again,
// CONNECTING is published even if it was already, to answer an update.
func (c *Core) connect(again bool) {
	c.phase = PhaseConnecting
	if again {
		c.published = None
	}
	c.publish(Connecting, 0, nil)
	c.begin()
}

// reconnect starts a pass because the list lost the connected address.
func (c *Core) reconnect() {
	if c.held { // a pass had failed before, and READY has not followed
		c.held = false
		c.phase = PhaseRetrying
		c.begin()
		return
	}
	c.connect(true)
}

// Fail makes calls fail with err, which came in place of a list, unless the known
// addresses may still serve.
func (c *Core) Fail(err error) []Action {
	if len(c.subs) == 0 || c.published == TransientFailure {
		c.publish(TransientFailure, 0, err)
	}
	return c.take()
}

// ExitIdle asks for a connection.
func (c *Core) ExitIdle() []Action {
	if c.phase == PhaseIdle && len(c.subs) > 0 {
		c.connect(false)
	}
	return c.take()
}

// TimerFired tells the core that AttemptDelay has passed since StartTimer.
func (c *Core) TimerFired() []Action {
	if c.passing && int(c.next) < len(c.subs) {
		c.next++
		c.attempt()
	}
	return c.take()
}

// SetHealth says whether READY waits for the server's health. It counts from the next
// connection.
func (c *Core) SetHealth(on bool) { c.health = on }
