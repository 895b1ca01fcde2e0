// Package weightedtarget decides which children weighted_target has, and aggregates their
// connectivity states (gRFC A28). It is a state machine without goroutines, a clock or gRPC
// types. Its inputs are events, and its outputs are actions:
//
//	update from a and b to b and c, retention 60s  ->  retain a for 60s, update b,
//	                                                   create c, update c
package weightedtarget

import (
	"maps"
	"slices"
	"time"
)

// State is a connectivity state of gRPC, without SHUTDOWN.
type State int

// The states, in the order of precedence: the policy is in the first state that any child is in.
const (
	Ready State = iota
	Connecting
	Idle
	TransientFailure
)

// String returns gRPC's name of the state.
func (s State) String() string {
	return [...]string{"READY", "CONNECTING", "IDLE", "TRANSIENT_FAILURE"}[s]
}

// Action is an instruction to the policy.
type Action struct {
	Kind  Kind
	Child string
	After time.Duration // for Retain: how long to keep the child
}

// Kind is the kind of an Action.
type Kind int

// The kinds of actions.
const (
	Create Kind = iota // create a child; an Update follows
	Update
	Retain // send no calls to a child, and call RetentionEnded after the time After
	Return // stop the timer of a retained child, because the child is in use again
	Destroy
)

// Core is the state of one policy. The zero value is ready to use.
type Core struct {
	children    map[string]*child
	published   State
	mustPublish bool
}

type child struct {
	state        State // the last state that counts for the aggregation (see Report)
	refused      bool  // the child has refused its last update and has not reported since
	retained     bool  // the child is no longer configured, and its retention time is not over
	wakeReturned bool  // Wake has returned the child since its last report
}

func (ch *child) effectiveState() State {
	if ch.refused {
		return TransientFailure
	}
	return ch.state
}

// Update sets the configured children. A child that is no longer configured is destroyed after the
// retention time. The policy must call Publish after an update.
func (c *Core) Update(names []string, retention time.Duration) (actions []Action) {
	if c.children == nil {
		c.children = make(map[string]*child)
	}
	configured := make(map[string]bool, len(names))
	for _, name := range names {
		configured[name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(c.children)) {
		switch child := c.children[name]; {
		case configured[name]:
		case retention == 0:
			delete(c.children, name)
			actions = append(actions, Action{Kind: Destroy, Child: name})
		case !child.retained:
			child.retained = true
			actions = append(actions, Action{Kind: Retain, Child: name, After: retention})
		}
	}
	for _, name := range slices.Sorted(slices.Values(names)) {
		actions = append(actions, c.configure(name)...)
	}
	return actions
}

func (c *Core) configure(name string) (actions []Action) {
	switch ch := c.children[name]; {
	case ch == nil:
		// A new child is CONNECTING. If all other children have failed, calls wait for it.
		c.children[name] = &child{state: Connecting}
		actions = append(actions, Action{Kind: Create, Child: name})
	case ch.retained:
		ch.retained = false
		actions = append(actions, Action{Kind: Return, Child: name})
	}
	return append(actions, Action{Kind: Update, Child: name})
}

// RetentionEnded is called when the retention time of a child is over.
func (c *Core) RetentionEnded(name string) []Action {
	if child, ok := c.children[name]; !ok || !child.retained {
		return nil
	}
	delete(c.children, name)
	return []Action{{Kind: Destroy, Child: name}}
}

// Report records the state that a child reports. counts is false if the aggregation continues to
// use the previous state of the child. This is the case for CONNECTING after a failure: otherwise,
// calls would wait for a child that never connects.
func (c *Core) Report(name string, state State) (counts bool) {
	child, ok := c.children[name]
	if !ok {
		return false
	}
	child.wakeReturned = false
	counts = child.state != TransientFailure || state != Connecting
	if !counts && !child.refused {
		return false
	}
	before := child.effectiveState()
	child.refused = false
	if counts {
		child.state = state
	}
	c.stateChanged(child, before)
	return counts
}

// Refuse records that a child has refused its update. The child counts as failed until its next
// report or update.
func (c *Core) Refuse(name string) {
	if child, ok := c.children[name]; ok {
		before := child.effectiveState()
		child.refused = true
		c.stateChanged(child, before)
	}
}

func (c *Core) stateChanged(child *child, before State) {
	after := child.effectiveState()
	if !child.retained && (before == c.published || after == c.published || c.State() != c.published) {
		c.mustPublish = true
	}
}

// Stale reports whether the state must be published again.
func (c *Core) Stale() bool { return c.mustPublish }

// Publish returns the state to publish, and records it as published.
func (c *Core) Publish() State {
	c.published, c.mustPublish = c.State(), false
	return c.published
}

// State returns the state of the policy: the first of READY, CONNECTING, IDLE and TRANSIENT_FAILURE
// that any child is in. Retained children do not count.
func (c *Core) State() State {
	aggregate := TransientFailure
	for _, child := range c.children {
		if !child.retained {
			aggregate = min(aggregate, child.effectiveState())
		}
	}
	return aggregate
}

// In returns the names of the configured children that are in the given state, sorted.
func (c *Core) In(state State) []string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(c.children)) {
		if child := c.children[name]; child.effectiveState() == state && !child.retained {
			names = append(names, name)
		}
	}
	return names
}

// Wake returns the names of the IDLE children that the policy must make connect, sorted. While
// another child is READY or CONNECTING, an IDLE child receives no call that would make it connect.
// Wake returns a child at most once after each of its reports.
func (c *Core) Wake() []string {
	if aggregate := c.State(); aggregate != Ready && aggregate != Connecting {
		return nil
	}
	idle := slices.DeleteFunc(c.In(Idle), func(name string) bool { return c.children[name].wakeReturned })
	for _, name := range idle {
		c.children[name].wakeReturned = true
	}
	return idle
}

// CountsAs returns the state that the aggregation uses for an existing child.
func (c *Core) CountsAs(name string) State { return c.children[name].effectiveState() }

// Has reports whether a child is configured.
func (c *Core) Has(name string) bool {
	child, ok := c.children[name]
	return ok && !child.retained
}
