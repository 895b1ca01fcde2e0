// Package priority decides which priority is in use, as gRFC A56 has it. It is a
// state machine: no goroutines, no locks, no clock, no gRPC types. Events go in,
// and the actions that they call for come out:
//
//	report p0 TRANSIENT_FAILURE  ->  stop p0's failover timer, create p1,
//	                                 start p1's failover timer, update p1
//	p1 was updated               ->  publish p1
//
// Beyond A56 there are the failback delay, see Config.FailbackDelay, children that are
// READY and should not have the calls all the same, see Condition, and those that are
// connected before they are needed, see Config.WarmStandby.
package priority

import (
	"maps"
	"slices"
	"time"
)

// Config is what the core needs to know of the policy's configuration.
type Config struct {
	// Children are the names of all children that are configured, in any order.
	Children []string
	// Priorities are the names of children, each at most once, the highest priority
	// first (A56, "LB Policy Configuration").
	Priorities []string
	// Of says for each of Priorities to which priority of its source it belongs, by a number that
	// does not fall. Those of one number are near groups of it: see groups.go. nil is A56, where
	// each is its own.
	Of []int
	// FailoverTimeout is how long a child is waited for while it connects.
	FailoverTimeout time.Duration
	// ChildRetention is how long a child that was deactivated in favour of a higher
	// priority is kept, and RemovedChildRetention one that is no longer configured.
	// 0 destroys it at once.
	ChildRetention        time.Duration
	RemovedChildRetention time.Duration
	// FailbackDelay is how long a child must have been READY before it takes over
	// from one of a lower priority that is in use and READY. 0 is A56's behaviour.
	FailbackDelay time.Duration
	// MinReady is the part of a child's weight that is to be READY. One that has less is
	// poor, until it has MinReadyRecovery or, where that is less, MinReady again. 0 is
	// A56's behaviour.
	MinReady, MinReadyRecovery float64
	// WarmStandby is how many of the priorities below the one in use are connected before
	// they are needed. 0 is A56's behaviour.
	WarmStandby int
	// FastFailover says that a child that has lost its connections is not waited for
	// while a lower one is READY. false is A56's behaviour. Single are the children that
	// can hold one connection only, which are waited for all the same.
	FastFailover bool
	Single       []string
	// FailbackJitter is the window over which clients spread the end of their failback
	// delays.
	FailbackJitter time.Duration
	// MaxFailbackDelay is what the failback delay of a child that flaps grows to. 0 or
	// less than FailbackDelay lets it stay as it is.
	MaxFailbackDelay time.Duration
}

// Core is the state of one policy. Its methods are the events; they return the
// actions to be done. Events about a child that does not exist call for nothing.
type Core struct {
	config     Config
	configured map[string]bool // config.Children
	children   map[string]*child
	actions    []Action // of the event being handled

	// currentPriority is the index of the priority in use, or none. During a choice it
	// is still the one before: the failback delay asks for it. After an update it is that of
	// the child that was in use, if it stays.
	currentPriority int
	candidates      map[string]bool // see reorder
	waitingFor      *child          // which a choice made, and goes on once it has been updated
	standbyAsked    bool            // StandbyDue is to come

	published *child   // the child in use, nil before the first and for PublishEmpty
	tried     []string // the children that get a few of the calls beside it
	reports   int      // how many there were, of all children
	stale     bool     // what is published is not what published now has
	updating  bool     // between BeginUpdate and EndUpdate
	ofUpdate  bool     // the choice being made is that of an update
}

const none = -1

// New returns a core without a configuration.
func New() *Core {
	return &Core{children: make(map[string]*child), currentPriority: none}
}

// InUse returns the name of the child whose picker is published, "" for none.
func (c *Core) InUse() string {
	if c.published == nil {
		return ""
	}
	return c.published.name
}

// OnTrial returns the children that get a few of the calls beside the one in use, in the
// order of the priorities. It is not to be modified.
func (c *Core) OnTrial() []string { return c.tried }

// State returns the state that a child is taken to be in: the one it last reported,
// CONNECTING before its first report, TRANSIENT_FAILURE after its failover timer
// expired; and whether the child exists.
func (c *Core) State(name string) (State, bool) {
	child, ok := c.children[name]
	if !ok {
		return Idle, false
	}
	return child.connectivityState(), true
}

// Given returns how long the child was last given to connect.
func (c *Core) Given(name string) time.Duration {
	if child, ok := c.children[name]; ok {
		return child.given
	}
	return 0
}

// BeginUpdate begins an update: children that are no longer configured are
// deactivated, all others updated (A56, "Configuration Updates"). Until EndUpdate,
// events change the state of children, but no priority is chosen.
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

// EndUpdate ends an update with the choice of a priority, which is published even
// if it is the same as before.
func (c *Core) EndUpdate() []Action {
	c.updating, c.ofUpdate = false, true
	c.stale = true
	return c.choose()
}

// Updated handles the end of an Update, after what the child said from inside it
// (Reported, Refused): A56 updates a child, and reads its state afterwards. If it was
// a choice that made the child, the choice goes on.
func (c *Core) Updated(name string) []Action {
	if c.waitingFor == nil || c.waitingFor.name != name {
		return nil
	}
	c.waitingFor = nil
	return c.choose()
}

// Reported handles a child's report of its state and picker, and what it says beside
// them.
func (c *Core) Reported(name string, state State, tier Tier) []Action {
	child, ok := c.children[name]
	if !ok {
		return nil
	}
	c.track(child, state, tier)
	return c.choose()
}

// Refused handles an error that a child returned from its update. It counts as a
// report of TRANSIENT_FAILURE, until the child reports or is updated again, unless its
// last report was READY or IDLE, which then stays in use. counts says which it was.
func (c *Core) Refused(name string) (counts bool, actions []Action) {
	child, ok := c.children[name]
	if !ok || child.reported == Ready || child.reported == Idle {
		return false, nil
	}
	c.refuse(child)
	return true, c.choose()
}

// FailoverTimerFired handles the end of StartFailover's time.
func (c *Core) FailoverTimerFired(name string) []Action {
	child, ok := c.children[name]
	if !ok || child.failover != running {
		return nil
	}
	c.expire(child)
	return c.choose()
}

// DeactivationTimerFired handles the end of StartDeactivation's time.
func (c *Core) DeactivationTimerFired(name string) []Action {
	child, ok := c.children[name]
	if !ok || child.deactivation != running {
		return nil
	}
	child.deactivation = fired
	c.destroy(child)
	return c.take()
}

// FailbackTimerFired handles the end of StartFailback's time.
func (c *Core) FailbackTimerFired(name string) []Action {
	child, ok := c.children[name]
	if !ok || child.failback != running {
		return nil
	}
	child.failback = fired
	return c.choose()
}

// SteadyTimerFired handles the end of StartSteady's time.
func (c *Core) SteadyTimerFired(name string) []Action {
	if child, ok := c.children[name]; ok && child.steady == running {
		child.steady, child.flaps = stopped, 0
	}
	return c.take()
}

// choose chooses a priority unless an update is being applied, be it the policy's or
// that of a child which a choice made.
func (c *Core) choose() []Action {
	if !c.updating && c.waitingFor == nil {
		c.choosePriority()
		c.ofUpdate = c.ofUpdate && c.waitingFor != nil // which goes on in Updated
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

// names returns the names of the children that exist, sorted, so that the same
// events always give the same actions.
func (c *Core) names() []string { return slices.Sorted(maps.Keys(c.children)) }
