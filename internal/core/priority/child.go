package priority

import "time"

// child is a child as the core sees it. We don't always take it at its word. If its failover timer
// has fired, or if it refused its last update, we may treat it as failed:
//
//	reported           failover timer  refused  counts as          calls
//	READY, IDLE        stopped         no       READY, IDLE        use it
//	CONNECTING         running         no       CONNECTING         wait for it
//	CONNECTING         stopped         no       CONNECTING         wait, if no priority is in the rows above
//	CONNECTING         fired           no       TRANSIENT_FAILURE  use the next one, or get a TimeoutError
//	TRANSIENT_FAILURE  stopped         no       TRANSIENT_FAILURE  use the next one, or get its error
//	not READY, IDLE    any             yes      TRANSIENT_FAILURE  use the next one, or get the refusal
//
// The third row is a child that has failed and is connecting again. According to A56, it doesn't
// get a new timer until it has been READY or IDLE. A refusal doesn't touch the timer, and it's
// forgotten with the next report or update.
type child struct {
	name string

	reported        State
	seenReadyOrIdle bool // since its last failure; the name is from A56
	wasReady        bool
	refused         bool
	exitIdleSent    bool // ExitIdle was called since the last report

	failover        timer
	failoverTimeout time.Duration
	lifetime        lifetime
}

type timer int

const (
	stopped timer = iota
	running
	fired
)

// lifetime says whether we're about to destroy a child. Unless it's active, the deactivation timer
// is running.
type lifetime int

const (
	active lifetime = iota
	deactivated
	removed
)

func (ch *child) connectivityState() State {
	if ch.refused || ch.failover == fired {
		return TransientFailure
	}
	return ch.reported
}

func (ch *child) failoverTimerPending() bool { return ch.failover == running && !ch.refused }

// publication also works for a nil child, which means that there are no priorities.
func (ch *child) publication() Kind {
	switch {
	case ch == nil:
		return PublishEmpty
	case ch.refused:
		return PublishRefused
	case ch.failover == fired:
		return PublishTimeout
	}
	return Publish
}

// create creates a child. We don't choose a priority until its first update is done (A56,
// "Algorithm for Choosing a Priority"), because the child may report its state in the middle of it.
func (c *Core) create(name string) {
	child := &child{name: name, reported: Connecting}
	c.children[name], c.creating = child, child
	c.add(Create, name, 0)
	c.startFailover(child)
	c.add(Update, name, 0)
}

func (c *Core) destroy(child *child) {
	c.stopFailover(child)
	delete(c.children, child.name)
	c.add(Destroy, child.name, 0)
}

func (c *Core) startFailover(child *child) {
	child.failover = running
	child.failoverTimeout = c.config.FailoverTimeout
	c.add(StartFailover, child.name, child.failoverTimeout)
}

func (c *Core) stopFailover(child *child) {
	if child.failover == running {
		c.add(StopFailover, child.name, 0)
	}
	child.failover = stopped
}

// deactivate starts the deactivation timer, unless it's already running (A56, "Child Lifetime
// Management"). The exception is a deactivated child that is now removed as well. We restart its
// timer if that gets rid of the child sooner.
func (c *Core) deactivate(child *child, to lifetime) {
	retention := c.config.ChildRetention
	if to == removed {
		retention = c.config.RemovedChildRetention
	}
	sooner := child.lifetime == deactivated && to == removed && (retention < c.config.ChildRetention || retention == 0)
	if child.lifetime != active && !sooner {
		child.lifetime = to
		return
	}
	c.maybeReactivate(child)
	if retention == 0 {
		c.destroy(child)
		return
	}
	child.lifetime = to
	c.add(StartDeactivation, child.name, retention)
}

func (c *Core) maybeReactivate(child *child) {
	if child.lifetime != active {
		c.add(StopDeactivation, child.name, 0)
	}
	child.lifetime = active
}

func (c *Core) exitIdle(child *child) {
	if child.connectivityState() == Idle && !child.exitIdleSent {
		child.exitIdleSent = true
		c.add(ExitIdle, child.name, 0)
	}
}
