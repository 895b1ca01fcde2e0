// Package priority chooses the priority in use, as in gRFC A56. It is a state machine without
// goroutines, locks, a clock or gRPC types. Each event returns the actions to execute:
//
//	report p0 TRANSIENT_FAILURE  ->  stop p0's failover timer, create p1,
//	                                 start p1's failover timer, update p1
//	p1 was updated               ->  publish p1
//
// In addition to A56, the package connects children before they are needed (Config.WarmStandby), and
// lets a READY child take calls while a higher one reconnects (Config.Overflow).
package priority

import (
	"maps"
	"slices"
	"time"
)

// Config is the part of the policy's configuration that this package needs.
type Config struct {
	Children []string
	// Priorities are the names of children in descending order of priority, each at most once (A56,
	// "LB Policy Configuration").
	Priorities []string
	// SourcePriorities holds a number for each entry of Priorities, in non-decreasing order.
	// Priorities with the same number are the near groups of one priority of the source: they differ
	// in how far their endpoints are from the client, and WarmStandby counts them as one. If it is
	// nil, each priority has its own number, as in A56.
	SourcePriorities []int
	// FailoverTimeout is how long calls wait for a child that is connecting.
	FailoverTimeout time.Duration
	// ChildRetention is how long a child is kept after a higher priority has taken over.
	// RemovedChildRetention is how long a child is kept after it was removed from the configuration. 0
	// means that it is destroyed immediately.
	ChildRetention        time.Duration
	RemovedChildRetention time.Duration
	// WarmStandby is how many priorities below the one in use are connected before they are needed.
	// It is 0 in A56.
	WarmStandby int
	// Overflow means that a READY child takes calls if there is one, and that standbys are connected
	// from the start. It is false in A56.
	Overflow bool
}

// Core is the state of one policy. Each event is a method that returns the actions to execute.
// Events of a child that does not exist have no effect.
type Core struct {
	config   Config
	children map[string]*child
	actions  []Action

	updating bool   // between BeginUpdate and EndUpdate
	creating *child // its first update is not done yet

	currentPriority  int    // index of the one in use, or none: from BeginUpdate until the next choice
	wantedBelow      string // the argument of WantStandbyBelow
	standbyRequested bool   // CallStandbyDue is on its way

	published   *child // in use; nil before the first publication and after PublishEmpty
	publishedAs Kind   // the kind of the last publication, or outdated
}

const none = -1

const outdated Kind = -1 // since then, there may be another picker or error

// New returns a core without a configuration.
func New() *Core {
	return &Core{children: make(map[string]*child), currentPriority: none}
}

// InUse names the child whose picker is published, or "".
func (c *Core) InUse() string {
	if c.published == nil {
		return ""
	}
	return c.published.name
}

// State is what a child counts as in the choice of a priority: TRANSIENT_FAILURE if its failover timer
// has fired or it has refused its update, else its last report, or CONNECTING before the first one. ok
// is false if there is no such child.
func (c *Core) State(name string) (state State, ok bool) {
	child, ok := c.children[name]
	if !ok {
		return Idle, false
	}
	return child.connectivityState(), true
}

// Awaited is true if calls may wait for a child: it is IDLE, or it is connecting and its failover
// timer runs.
func (c *Core) Awaited(name string) bool {
	child, ok := c.children[name]
	return ok && (child.connectivityState() == Idle || child.failoverTimerPending())
}

// FailoverTimeout is the duration of the child's last failover timer.
func (c *Core) FailoverTimeout(name string) time.Duration {
	if child, ok := c.children[name]; ok {
		return child.failoverTimeout
	}
	return 0
}

// BeginUpdate deactivates the children that are no longer configured, and updates the others (A56,
// "Configuration Updates"). We choose no priority before EndUpdate.
func (c *Core) BeginUpdate(config Config) []Action {
	c.updating = true
	c.config = config
	c.currentPriority = none
	for _, name := range slices.Sorted(maps.Keys(c.children)) { // for the same actions in each run
		child := c.children[name]
		if !slices.Contains(config.Children, name) {
			c.deactivate(child, removed)
			continue
		}
		if child.lifetime == removed {
			child.lifetime = deactivated
		}
		child.refused = false
		c.add(Update, name, 0)
	}
	return c.takeActions()
}

// EndUpdate chooses a priority and publishes it, even if it was in use before.
func (c *Core) EndUpdate() []Action {
	c.updating, c.publishedAs = false, outdated
	return c.choose()
}

// Updated is called when an Update action was executed, after the calls of Reported or Refused for
// the child's reports during the update. After the first update of a child, the choice that has
// created it goes on.
func (c *Core) Updated(name string) []Action {
	if c.creating == nil || c.creating.name != name {
		return nil
	}
	c.creating = nil
	return c.choose()
}

// Reported is called when a child reports its state (A56, "Child Connectivity State Tracking").
func (c *Core) Reported(name string, state State) []Action {
	child, ok := c.children[name]
	if !ok {
		return nil
	}
	before := child.reported
	child.reported, child.refused, child.exitIdleSent = state, false, false
	switch state {
	case Ready, Idle:
		child.seenReadyOrIdle = true
		child.wasReady = child.wasReady || state == Ready
		c.stopFailover(child)
	case TransientFailure:
		child.seenReadyOrIdle = false
		c.stopFailover(child)
	case Connecting:
		if before != Connecting && child.seenReadyOrIdle {
			c.startFailover(child)
		}
	}
	if child == c.published && child.publication() == Publish {
		c.publishedAs = outdated // a new picker
	}
	return c.choose()
}

// Refused is called when a child has refused its update. counts is false for a child that is READY or
// IDLE: it goes on with what it has. Another one counts as TRANSIENT_FAILURE until its next report or
// update.
func (c *Core) Refused(name string) (counts bool, actions []Action) {
	child, ok := c.children[name]
	if !ok || child.reported == Ready || child.reported == Idle {
		return false, nil
	}
	child.refused = true
	if child == c.published {
		c.publishedAs = outdated // a new error
	}
	return true, c.choose()
}

// FailoverTimerFired is called when the timer of StartFailover fires.
func (c *Core) FailoverTimerFired(name string) []Action {
	child, ok := c.children[name]
	if !ok || child.failover != running {
		return nil
	}
	child.failover = fired
	child.seenReadyOrIdle = false // the child has failed
	return c.choose()
}

// DeactivationTimerFired is called when the timer of StartDeactivation fires.
func (c *Core) DeactivationTimerFired(name string) []Action {
	child, ok := c.children[name]
	if !ok || child.lifetime == active {
		return nil
	}
	child.lifetime = active // nothing to stop
	c.destroy(child)
	return c.takeActions()
}

func (c *Core) add(kind Kind, child string, after time.Duration) {
	c.actions = append(c.actions, Action{Kind: kind, Child: child, After: after})
}

func (c *Core) takeActions() []Action {
	actions := c.actions
	c.actions = nil
	return actions
}
