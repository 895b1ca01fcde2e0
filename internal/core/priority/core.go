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
	config     Config
	configured map[string]bool
	children   map[string]*child
	actions    []Action

	currentPriority  int    // index of the priority in use, or none
	waitingFor       *child // a child that the current choice has created; the choice continues after the child's update
	wantedBelow      string // the argument of Want
	standbyRequested bool   // MakeStandby was returned, and StandbyDue has not been called since

	published   *child // the child in use; nil before the first publication and after PublishEmpty
	mustPublish bool   // the published state is out of date
	updating    bool   // BeginUpdate was called, and EndUpdate was not called since
}

const none = -1

// New returns a core without a configuration.
func New() *Core {
	return &Core{children: make(map[string]*child), currentPriority: none}
}

// InUse returns the name of the child whose picker is published, or "".
func (c *Core) InUse() string {
	if c.published == nil {
		return ""
	}
	return c.published.name
}

// State returns the state that the choice of a priority assumes for a child, and whether the child
// exists. The state is TRANSIENT_FAILURE if the failover timer of the child has fired or the child
// has refused its update. Otherwise it is the last reported state, or CONNECTING before the first
// report.
func (c *Core) State(name string) (State, bool) {
	child, ok := c.children[name]
	if !ok {
		return Idle, false
	}
	return child.connectivityState(), true
}

// HasTime reports whether calls may wait for a child: it is IDLE, or connecting and its failover
// timer is running.
func (c *Core) HasTime(name string) bool {
	child, ok := c.children[name]
	return ok && child.hasTime()
}

// Given returns the duration of the last failover timer that was started for a child.
func (c *Core) Given(name string) time.Duration {
	if child, ok := c.children[name]; ok {
		return child.failoverTimeout
	}
	return 0
}

// BeginUpdate begins an update. It deactivates the children that are no longer configured, and
// updates the others (A56, "Configuration Updates"). No priority is chosen before EndUpdate.
func (c *Core) BeginUpdate(config Config) []Action {
	c.updating = true
	c.config = config
	c.configured = make(map[string]bool, len(config.Children))
	for _, name := range config.Children {
		c.configured[name] = true
	}
	c.currentPriority = none
	for _, name := range c.names() {
		if !c.configured[name] {
			c.deactivate(c.children[name], true)
		} else {
			c.children[name].removed = false
			c.update(c.children[name])
		}
	}
	return c.takeActions()
}

// EndUpdate ends an update and chooses a priority. The priority is published even if it was already
// in use.
func (c *Core) EndUpdate() []Action {
	c.updating, c.mustPublish = false, true
	return c.choose()
}

// Updated is called when an Update action was executed, after the calls of Reported or Refused for
// the child's reports during the update. If a choice created the child, Updated continues that
// choice.
func (c *Core) Updated(name string) []Action {
	if c.waitingFor == nil || c.waitingFor.name != name {
		return nil
	}
	c.waitingFor = nil
	return c.choose()
}

// Reported is called when a child reports its state.
func (c *Core) Reported(name string, state State) []Action {
	child, ok := c.children[name]
	if !ok {
		return nil
	}
	c.trackReport(child, state)
	return c.choose()
}

// Refused is called when a child has refused its update. If the last report of the child is READY
// or IDLE, the refusal is ignored, and counts is false. Otherwise, the child counts as
// TRANSIENT_FAILURE until its next report or update.
func (c *Core) Refused(name string) (counts bool, actions []Action) {
	child, ok := c.children[name]
	if !ok || child.reported == Ready || child.reported == Idle {
		return false, nil
	}
	c.refuse(child)
	return true, c.choose()
}

// FailoverTimerFired is called when the timer of StartFailover fires.
func (c *Core) FailoverTimerFired(name string) []Action {
	child, ok := c.children[name]
	if !ok || child.failover != running {
		return nil
	}
	c.expire(child)
	return c.choose()
}

// DeactivationTimerFired is called when the timer of StartDeactivation fires.
func (c *Core) DeactivationTimerFired(name string) []Action {
	child, ok := c.children[name]
	if !ok || child.deactivation != running {
		return nil
	}
	child.deactivation = fired
	c.destroy(child)
	return c.takeActions()
}

// choose chooses a priority, unless an update is in progress or an earlier choice waits for the
// update of a child that it has created. It returns the pending actions.
func (c *Core) choose() []Action {
	if !c.updating && c.waitingFor == nil {
		c.choosePriority()
	}
	return c.takeActions()
}

func (c *Core) addAction(kind Kind, name string) {
	c.actions = append(c.actions, Action{Kind: kind, Child: name})
}

func (c *Core) addTimer(kind Kind, child *child, after time.Duration) {
	c.actions = append(c.actions, Action{Kind: kind, Child: child.name, After: after})
}

func (c *Core) takeActions() []Action {
	actions := c.actions
	c.actions = nil
	return actions
}

// names returns the names of all children. They are sorted so that the order of actions is
// deterministic.
func (c *Core) names() []string { return slices.Sorted(maps.Keys(c.children)) }
