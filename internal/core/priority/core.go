// Package priority chooses the priority in use, as in gRFC A56. It is a state machine without
// goroutines, locks, a clock or gRPC types. Each event returns the actions to execute:
//
//	report p0 TRANSIENT_FAILURE  ->  stop p0's failover timer, create p1,
//	                                 start p1's failover timer, update p1
//	p1 was updated               ->  publish p1
//
// In addition to A56, the core handles the failback delay (Config.FailbackDelay), READY children
// that should not take calls (Condition), and children that are connected before they are needed
// (Config.WarmStandby).
package priority

import (
	"maps"
	"slices"
	"time"
)

// Config is the part of the policy's configuration that the core uses.
type Config struct {
	// Children are the names of all configured children, in any order.
	Children []string
	// Priorities contains the names of children, each at most once, in descending order of priority
	// (A56, "LB Policy Configuration").
	Priorities []string
	// Of contains, for each entry of Priorities, the number of the source's priority, in
	// non-decreasing order. Priorities with the same number are near groups; see groups.go. If Of
	// is nil, each priority has its own number, as in A56.
	Of []int
	// FailoverTimeout is how long the choice waits for a child that is connecting.
	FailoverTimeout time.Duration
	// ChildRetention is how long a child is kept after it was deactivated because of a higher
	// priority. RemovedChildRetention is how long it is kept after it was removed from the
	// configuration. With 0, the child is destroyed immediately.
	ChildRetention        time.Duration
	RemovedChildRetention time.Duration
	// FailbackDelay is how long a child must be READY before it takes over from a lower priority
	// that is in use and READY. 0 is A56's behavior.
	FailbackDelay time.Duration
	// MinReady is the share of a child's weight that must be READY. A child whose share falls below
	// MinReady is poor until the share reaches the larger of MinReady and MinReadyRecovery. 0 is
	// A56's behavior.
	MinReady, MinReadyRecovery float64
	// WarmStandby is how many priorities below the one in use are connected before they are needed.
	// 0 is A56's behavior.
	WarmStandby int
	// FastFailover makes the choice skip a child that has lost its connections while a lower
	// priority is READY. It does not apply to the children in Single, which can hold only one
	// connection. false is A56's behavior.
	FastFailover bool
	Single       []string
	// FailbackJitter is the window over which clients spread the ends of their failback delays.
	FailbackJitter time.Duration
	// MaxFailbackDelay is the maximum failback delay of a flapping child. If it is less than
	// FailbackDelay, the delay does not grow.
	MaxFailbackDelay time.Duration
}

// Core is the state of one policy. Each event is a method and returns the actions to execute.
// Events of a child that does not exist have no effect.
type Core struct {
	config     Config
	configured map[string]bool
	children   map[string]*child
	actions    []Action

	// currentPriority is the index of the priority in use, or none. During a choice it is the
	// previous one, because the failback delay depends on that. An update changes it to the new
	// index of the child in use.
	currentPriority int
	candidates      map[string]bool // see reorder
	waitingFor      *child          // a child that the current choice has created; the choice continues when the child has been updated
	standbyAsked    bool            // MakeStandby was returned, and StandbyDue has not been called yet

	published *child   // the child in use; nil before the first publication and after PublishEmpty
	tried     []string // children that get trial calls
	reports   int      // number of reports so far, from all children
	stale     bool     // the state of the child in use has changed since it was published
	updating  bool     // between BeginUpdate and EndUpdate
	ofUpdate  bool     // the current choice belongs to an update
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

// OnTrial returns the children that get a few trial calls although they are not in use, in priority
// order. The result must not be modified.
func (c *Core) OnTrial() []string { return c.tried }

// State returns the state that a child counts as, and whether the child exists. If the child's
// failover timer has fired or it has refused its update, it counts as TRANSIENT_FAILURE. Otherwise
// its last report counts, or CONNECTING before the first one.
func (c *Core) State(name string) (State, bool) {
	child, ok := c.children[name]
	if !ok {
		return Idle, false
	}
	return child.connectivityState(), true
}

// Given returns the duration of the child's most recent failover timer.
func (c *Core) Given(name string) time.Duration {
	if child, ok := c.children[name]; ok {
		return child.given
	}
	return 0
}

// BeginUpdate begins an update. It deactivates the children that are no longer configured and
// updates all others (A56, "Configuration Updates"). No priority is chosen until EndUpdate.
func (c *Core) BeginUpdate(config Config) []Action {
	c.updating = true
	before := c.config.Priorities
	c.config = config
	c.configured = make(map[string]bool, len(config.Children))
	for _, name := range config.Children {
		c.configured[name] = true
	}
	for _, name := range c.names() {
		c.weigh(c.children[name])
		c.race(c.children[name])
		c.children[name].single = slices.Contains(config.Single, name)
	}
	c.reorder(before)
	for _, name := range c.names() {
		if !c.configured[name] {
			c.deactivate(c.children[name], true)
		} else {
			c.children[name].removed = false
			if !c.children[name].good() {
				c.stopFailback(c.children[name])
			}
			c.update(c.children[name])
		}
	}
	return c.take()
}

// EndUpdate ends an update and chooses a priority. The chosen one is published even if it is the
// same as before.
func (c *Core) EndUpdate() []Action {
	c.updating, c.ofUpdate = false, true
	c.stale = true
	return c.choose()
}

// Updated is called when the shell has executed an Update action, after the events for what the
// child reported during the update (Reported, Refused). If a choice has created the child, it
// continues.
func (c *Core) Updated(name string) []Action {
	if c.waitingFor == nil || c.waitingFor.name != name {
		return nil
	}
	c.waitingFor = nil
	return c.choose()
}

// Reported handles a child's report of its state and its Tier.
func (c *Core) Reported(name string, state State, tier Tier) []Action {
	child, ok := c.children[name]
	if !ok {
		return nil
	}
	c.track(child, state, tier)
	return c.choose()
}

// Refused is called when a child has refused its update. If its last report is READY or IDLE, the
// child stays in use, and counts is false. Otherwise, the refusal counts as a report of
// TRANSIENT_FAILURE until the child reports or is updated again.
func (c *Core) Refused(name string) (counts bool, actions []Action) {
	child, ok := c.children[name]
	if !ok || child.reported == Ready || child.reported == Idle {
		return false, nil
	}
	c.refuse(child)
	return true, c.choose()
}

// FailoverTimerFired is called when the timer started by StartFailover fires.
func (c *Core) FailoverTimerFired(name string) []Action {
	child, ok := c.children[name]
	if !ok || child.failover != running {
		return nil
	}
	c.expire(child)
	return c.choose()
}

// DeactivationTimerFired is called when the timer started by StartDeactivation fires.
func (c *Core) DeactivationTimerFired(name string) []Action {
	child, ok := c.children[name]
	if !ok || child.deactivation != running {
		return nil
	}
	child.deactivation = fired
	c.destroy(child)
	return c.take()
}

// FailbackTimerFired is called when the timer started by StartFailback fires.
func (c *Core) FailbackTimerFired(name string) []Action {
	child, ok := c.children[name]
	if !ok || child.failback != running {
		return nil
	}
	child.failback = fired
	return c.choose()
}

// SteadyTimerFired is called when the timer started by StartSteady fires.
func (c *Core) SteadyTimerFired(name string) []Action {
	if child, ok := c.children[name]; ok && child.steady == running {
		child.steady, child.flaps = stopped, 0
	}
	return c.take()
}

// choose chooses a priority. It does nothing during an update of the policy, or while a choice
// waits for a child that it has created.
func (c *Core) choose() []Action {
	if !c.updating && c.waitingFor == nil {
		c.choosePriority()
		c.ofUpdate = c.ofUpdate && c.waitingFor != nil // an unfinished choice continues in Updated
	}
	return c.take()
}

func (c *Core) do(kind Kind, name string) {
	c.actions = append(c.actions, Action{Kind: kind, Child: name})
}

func (c *Core) start(kind Kind, child *child, after time.Duration) {
	c.actions = append(c.actions, Action{Kind: kind, Child: child.name, After: after})
}

func (c *Core) take() []Action {
	actions := c.actions
	c.actions = nil
	return actions
}

// names returns the names of all children, sorted so that the order of actions is deterministic.
func (c *Core) names() []string { return slices.Sorted(maps.Keys(c.children)) }
