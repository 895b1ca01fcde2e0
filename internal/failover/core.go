// Package failover decides which priority is in use, as gRFC A56 has it. It is a
// state machine: no goroutines, no clock, no gRPC types.
package failover

import "slices"

// State is a child's connectivity state.
type State int

// The states.
const (
	Idle State = iota
	Connecting
	Ready
	TransientFailure
)

// Kind is what an Action asks for.
type Kind int

// The kinds.
const (
	Create            Kind = iota // build the child and give it its update
	Update                        // give the child its update
	Destroy                       // close the child
	StartFailover                 // start the failover timer
	StopFailover                  // stop it
	StartDeactivation             // start the deactivation timer
	StopDeactivation              // stop it
	Use                           // publish the child's state and picker
	UseTimedOut                   // publish that the child's failover timer expired
	Empty                         // publish that there are no priorities
)

// Action is something the shell is to do.
type Action struct {
	Kind  Kind
	Child string
	// Removed tells, for StartDeactivation, that the child is not in the config.
	Removed bool
}

type child struct {
	reported State
	timedOut bool // the failover timer fired, and nothing has ended that
	pending  bool // the failover timer is running
	failed   bool // reported, or timed out, more recently than READY or IDLE
	inactive bool
	removed  bool
}

// Core is the state of one priority policy.
type Core struct {
	priorities []string
	configured map[string]bool
	children   map[string]*child
	current    string
	updating   bool
	actions    []Action
}

// New returns a core without a config.
func New() *Core { return &Core{children: map[string]*child{}} }

// Current returns the child in use, "" for none.
func (c *Core) Current() string { return c.current }

func (c *Core) do(kind Kind, name string) {
	c.actions = append(c.actions, Action{Kind: kind, Child: name})
}

func (c *Core) take() []Action {
	a := c.actions
	c.actions = nil
	return a
}

// BeginUpdate applies a config.
func (c *Core) BeginUpdate(priorities, configured []string) []Action {
	c.updating = true
	c.priorities = slices.Clone(priorities)
	c.configured = map[string]bool{}
	for _, name := range configured {
		c.configured[name] = true
	}
	names := make([]string, 0, len(c.children))
	for name := range c.children {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		ch := c.children[name]
		if !c.configured[name] {
			c.deactivate(name, true)
			continue
		}
		ch.removed = false
		c.do(Update, name)
	}
	return c.take()
}

// EndUpdate chooses.
func (c *Core) EndUpdate() []Action {
	c.updating = false
	c.choosePriority()
	return c.take()
}

// Reported handles a child's report.
func (c *Core) Reported(name string, s State) []Action {
	ch := c.children[name]
	if ch == nil {
		return nil
	}
	before := ch.reported
	ch.reported = s
	switch s {
	case Ready, Idle:
		ch.failed, ch.timedOut = false, false
		c.stopFailover(name)
	case TransientFailure:
		ch.failed, ch.timedOut = true, false
		c.stopFailover(name)
	case Connecting:
		if before == TransientFailure {
			ch.timedOut = false
		}
		if before != Connecting && !ch.failed && !ch.pending {
			c.startFailover(name)
		}
	}
	if !c.updating {
		c.choosePriority()
	}
	return c.take()
}

// FailoverFired handles the failover timer.
func (c *Core) FailoverFired(name string) []Action {
	ch := c.children[name]
	if ch == nil || !ch.pending {
		return nil
	}
	ch.pending, ch.timedOut, ch.failed = false, true, true
	if !c.updating {
		c.choosePriority()
	}
	return c.take()
}

// DeactivationFired handles the deactivation timer.
func (c *Core) DeactivationFired(name string) []Action {
	ch := c.children[name]
	if ch == nil || !ch.inactive {
		return nil
	}
	c.stopFailover(name)
	delete(c.children, name)
	c.do(Destroy, name)
	return c.take()
}

// Close destroys all children.
func (c *Core) Close() []Action {
	for name := range c.children {
		c.stopFailover(name)
		if c.children[name].inactive {
			c.do(StopDeactivation, name)
		}
		c.do(Destroy, name)
	}
	c.children = map[string]*child{}
	c.current = ""
	return c.take()
}

func (ch *child) state() State {
	if ch.timedOut {
		return TransientFailure
	}
	return ch.reported
}

func (c *Core) startFailover(name string) {
	c.children[name].pending = true
	c.do(StartFailover, name)
}

func (c *Core) stopFailover(name string) {
	if c.children[name].pending {
		c.children[name].pending = false
		c.do(StopFailover, name)
	}
}

func (c *Core) deactivate(name string, removed bool) {
	ch := c.children[name]
	if ch.inactive && ch.removed == removed {
		return
	}
	if ch.inactive {
		c.do(StopDeactivation, name)
	}
	ch.inactive, ch.removed = true, removed
	c.actions = append(c.actions, Action{Kind: StartDeactivation, Child: name, Removed: removed})
}

func (c *Core) setCurrentPriority(priority int, deactivateLower bool) {
	c.current = c.priorities[priority]
	if deactivateLower {
		for _, name := range c.priorities[priority+1:] {
			if c.children[name] != nil {
				c.deactivate(name, false)
			}
		}
	}
	if c.children[c.current].timedOut {
		c.do(UseTimedOut, c.current)
	} else {
		c.do(Use, c.current)
	}
}

func (c *Core) choosePriority() {
	if len(c.priorities) == 0 {
		c.current = ""
		c.do(Empty, "")
		return
	}
	for priority, name := range c.priorities {
		ch := c.children[name]
		if ch == nil {
			ch = &child{reported: Connecting}
			c.children[name] = ch
			c.do(Create, name)
			c.startFailover(name)
		} else if ch.inactive {
			ch.inactive = false
			c.do(StopDeactivation, name)
		}
		if ch.state() == Ready || ch.state() == Idle {
			c.setCurrentPriority(priority, true)
			return
		}
		if ch.pending {
			c.setCurrentPriority(priority, false)
			return
		}
	}
	for priority, name := range c.priorities {
		if c.children[name].state() == Connecting {
			c.setCurrentPriority(priority, false)
			return
		}
	}
	c.setCurrentPriority(len(c.priorities)-1, false)
}
