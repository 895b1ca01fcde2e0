// Package priority chooses which priority to use, as in gRFC A56. It's a state machine without
// goroutines, locks, a clock or gRPC types. Each event returns the actions to execute:
//
//	report p0 TRANSIENT_FAILURE  ->  stop p0's failover timer, create p1,
//	                                 start p1's failover timer, update p1
//	p1 was updated               ->  publish p1
//
// There are two additions to A56. We can connect children before they're needed
// (Config.WarmStandby), and let a READY child take calls while a higher one reconnects
// (Config.Overflow).
package priority

import (
	"maps"
	"slices"
	"time"
)

type Config struct {
	Children []string
	// Priorities lists children, highest priority first. No name may occur twice (A56, "LB Policy
	// Configuration").
	Priorities []string
	// SourcePriorities has a number for each entry of Priorities, and they must not decrease. If
	// one priority of the source is split by distance to the client, its parts have the same number
	// here, and WarmStandby counts them as one. nil means that each priority has its own number, as
	// in A56.
	SourcePriorities []int
	FailoverTimeout  time.Duration
	// ChildRetention is how long we keep a child once a higher priority has taken over.
	// RemovedChildRetention is how long we keep it once it's gone from the configuration. With 0,
	// it's destroyed right away.
	ChildRetention        time.Duration
	RemovedChildRetention time.Duration
	// WarmStandby is how many priorities below the one in use we connect before they're needed. A56
	// doesn't have this, i.e. it's 0 there.
	WarmStandby int
	// Overflow lets calls use any READY child rather than wait, and connects standbys from the
	// start. A56 doesn't have this.
	Overflow bool
}

// Core is the state of one policy. Each event is a method that returns the actions to execute. If
// the child of an event doesn't exist, nothing happens.
type Core struct {
	config   Config
	children map[string]*child
	actions  []Action

	updating bool   // between BeginUpdate and EndUpdate
	creating *child // the child that is waiting for its first update, or nil

	currentPriority  int // index of the one in use; none between BeginUpdate and the next choice
	wantedBelow      string
	standbyRequested bool // StandbyDue will be called

	published   *child // in use; nil before we've published anything and after PublishEmpty
	publishedAs Kind   // kind of the last publication, or outdated
}

const none = -1

const outdated Kind = -1 // the picker or the error may have changed since

func New() *Core {
	return &Core{children: make(map[string]*child), currentPriority: none}
}

func (c *Core) InUse() string {
	if c.published == nil {
		return ""
	}
	return c.published.name
}

// State returns what a child counts as when we choose a priority. That's TRANSIENT_FAILURE if its
// failover timer has fired or it refused its update. Otherwise it's what the child last reported,
// or CONNECTING if it hasn't. ok is false if there is no such child.
func (c *Core) State(name string) (state State, ok bool) {
	child, ok := c.children[name]
	if !ok {
		return Idle, false
	}
	return child.connectivityState(), true
}

// Awaited returns true if calls may be waiting for a child, i.e. if it's IDLE, or connecting with
// its failover timer running.
func (c *Core) Awaited(name string) bool {
	child, ok := c.children[name]
	return ok && (child.connectivityState() == Idle || child.failoverTimerPending())
}

func (c *Core) FailoverTimeout(name string) time.Duration {
	if child, ok := c.children[name]; ok {
		return child.failoverTimeout
	}
	return 0
}

// BeginUpdate deactivates children that aren't configured anymore and updates the rest (A56,
// "Configuration Updates"). We won't choose a priority until EndUpdate.
func (c *Core) BeginUpdate(config Config) []Action {
	c.updating = true
	c.config = config
	c.currentPriority = none
	for _, name := range slices.Sorted(maps.Keys(c.children)) { // sorted, so that the actions are the same every time
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

// EndUpdate chooses a priority and publishes it, even if it was already in use.
func (c *Core) EndUpdate() []Action {
	c.updating, c.publishedAs = false, outdated
	return c.choose()
}

// Updated is called after an Update action. By then, the policy has called Reported or Refused for
// anything the child reported during the update. If it was the child's first update, we now finish
// the choice that created the child.
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
		c.publishedAs = outdated
	}
	return c.choose()
}

// Refused is called when a child has refused its update. A child that's READY or IDLE continues
// with what it has. Any other child counts as TRANSIENT_FAILURE until its next report or update.
func (c *Core) Refused(name string) []Action {
	child, ok := c.children[name]
	if !ok || child.reported == Ready || child.reported == Idle {
		return nil
	}
	child.refused = true
	if child == c.published {
		c.publishedAs = outdated
	}
	return c.choose()
}

func (c *Core) FailoverTimerFired(name string) []Action {
	child, ok := c.children[name]
	if !ok || child.failover != running {
		return nil
	}
	child.failover = fired
	return c.choose()
}

func (c *Core) DeactivationTimerFired(name string) []Action {
	child, ok := c.children[name]
	if !ok || child.lifetime == active {
		return nil
	}
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
