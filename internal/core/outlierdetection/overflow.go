package outlierdetection

type Connection uint8

const (
	Connecting Connection = iota // no attempt has failed since it was last Connected
	Connected
	Broken // an attempt has failed since it was last Connected
)

// Connection records the state of an endpoint's connection. If it's Broken, it stays that way while
// we try again, until the endpoint is Connected.
func (c *Core[T]) Connection(e *Endpoint[T], now Connection) {
	if e.connection == Broken && now == Connecting {
		return
	}
	c.addToCounts(e, -1)
	e.connection = now
	c.addToCounts(e, 1)
	c.updateVisible()
}

// AllConnectsFailed is called when the child policy reports TRANSIENT_FAILURE. Any endpoint that
// looks as if it were still Connecting has failed by then and is waiting for its next attempt, so
// it's Broken.
func (c *Core[T]) AllConnectsFailed() {
	if c.sound == 0 {
		return
	}
	for _, e := range c.endpoints {
		if e.connection == Connecting {
			c.Connection(e, Broken)
		}
	}
}

// Answered is called when an endpoint answers a call that began after its last ejection.
func (c *Core[T]) Answered(e *Endpoint[T]) {
	if e.state == Returned || e.state == Ejected && !c.showsEjections {
		c.setState(e, InService)
		c.updateVisible(e)
	}
}

func (c *Core[T]) HidesEjections() bool { return !c.showsEjections }

func (c *Core[T]) setState(e *Endpoint[T], state State) {
	if e.state == state {
		return
	}
	c.addToCounts(e, -1)
	e.state = state
	c.addToCounts(e, 1)
	c.outcome.States = append(c.outcome.States, e)
}

func (c *Core[T]) addToCounts(e *Endpoint[T], delta int) {
	switch {
	case !e.present:
	case e.state == Ejected:
		c.ejected += delta
	case e.connection != Broken:
		c.sound += delta
	}
}

// updateVisible updates what the child policy sees of some endpoints. If ejections have just become
// visible or hidden, it updates all of them.
func (c *Core[T]) updateVisible(some ...*Endpoint[T]) {
	if shows := !c.config.BelowOverflow || c.sound > 0; shows != c.showsEjections {
		c.showsEjections = shows
		some = c.endpoints
	}
	for _, e := range some {
		if visible := e.Ejected() && c.showsEjections; visible != e.visiblyEjected && e.present {
			e.visiblyEjected = visible
			c.outcome.Changes = append(c.outcome.Changes, Change[T]{e, visible})
		}
	}
}
