// Package weightedtarget decides which children weighted_target has, and aggregates their
// connectivity states (gRFC A28). It is a state machine without goroutines, a clock or gRPC
// types. Its inputs are events, and its outputs are actions:
//
//	update to b and c, retention 60s  ->  retain a for 60s, update b, create c, update c
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
	Retain // keep a child without calls, and call RetentionEnded when the time After has passed
	Return // stop the timer of a retained child, which is in use again
	Destroy
)

// Core is the state of one policy. The zero value is ready to use.
type Core struct {
	children  map[string]*child
	published State
	stale     bool
	balanced  balanced
}

type child struct {
	state    State // the state with which the choice counts the child, unless refused is set
	refused  bool  // the child has refused its last update and has not reported since
	retained bool
	woken    bool // Wake has returned the child since its last report
	reserve  bool
	failed   float64
}

// out reports whether the child receives no calls as long as other children are READY, because it
// is retained or a reserve.
func (ch *child) out() bool { return ch.retained || ch.reserve }

func (ch *child) counts() State {
	if ch.refused {
		return TransientFailure
	}
	return ch.state
}

// Update sets the configured children. A child that is no longer configured is destroyed after the
// time retention. The policy must publish after an update.
func (c *Core) Update(names []string, retention time.Duration) (actions []Action) {
	if c.children == nil {
		c.children = make(map[string]*child)
	}
	c.stale = true
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
			child.retained, child.reserve = true, false
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
	case ch == nil && c.isReserve(name):
		return nil
	case ch == nil:
		// A new child is CONNECTING. If all other children have failed, calls wait for it.
		c.children[name] = &child{state: Connecting}
		actions = append(actions, Action{Kind: Create, Child: name})
	case ch.retained:
		ch.retained = false
		actions = append(actions, Action{Kind: Return, Child: name})
	}
	actions = append(actions, Action{Kind: Update, Child: name})
	return append(actions, c.setReserve(name)...)
}

// RetentionEnded is called when the retention time of a child is over.
func (c *Core) RetentionEnded(name string) []Action {
	child, ok := c.children[name]
	switch {
	case !ok || !child.out():
		return nil
	case child.reserve:
		return c.reserveEnded(name)
	}
	delete(c.children, name)
	return []Action{{Kind: Destroy, Child: name}}
}

// Report records a child's report. counts is false if the child keeps its previous state for the
// aggregation. This is the case for CONNECTING after a failure: otherwise, calls would wait for a
// child that never connects.
func (c *Core) Report(name string, state State) (counts bool) {
	child, ok := c.children[name]
	if !ok {
		return false
	}
	child.woken = false
	counts = child.state != TransientFailure || state != Connecting
	if !counts && !child.refused {
		return false
	}
	before := child.counts()
	child.refused = false
	if counts {
		child.state = state
	}
	c.changed(child, before)
	return counts
}

// Refuse records that a child has refused its update. The child counts as failed until its next
// report or update.
func (c *Core) Refuse(name string) {
	if child, ok := c.children[name]; ok {
		before := child.counts()
		child.refused = true
		c.changed(child, before)
	}
}

func (c *Core) changed(child *child, before State) {
	now := child.counts()
	// A child that fails or recovers changes the READY share, which is published with the state.
	failure := before != now && (before == TransientFailure || now == TransientFailure)
	if !child.retained && (before == c.published || now == c.published || failure || c.State() != c.published) {
		c.stale = true
	}
}

// Stale reports whether the state must be published again.
func (c *Core) Stale() bool { return c.stale }

// Publish returns the state to publish, and records it as published.
func (c *Core) Publish() State {
	c.published, c.stale = c.State(), false
	return c.published
}

// State returns the state of the policy by the usual precedence: READY, CONNECTING, IDLE,
// TRANSIENT_FAILURE. Retained children do not count, and reserves count only if they are READY.
func (c *Core) State() State {
	all := TransientFailure
	for _, child := range c.children {
		if !child.out() || child.reserve && child.counts() == Ready {
			all = min(all, child.counts())
		}
	}
	return all
}

// In returns the sorted names of the configured children whose state is the given one. If no child
// with a share is READY, In(Ready) returns the READY reserves.
func (c *Core) In(state State) []string {
	var names, reserves []string
	for _, name := range slices.Sorted(maps.Keys(c.children)) {
		switch child := c.children[name]; {
		case child.counts() != state || child.retained:
		case child.reserve:
			reserves = append(reserves, name)
		default:
			names = append(names, name)
		}
	}
	if state == Ready && len(names) == 0 {
		return reserves
	}
	return names
}

// Wake returns the IDLE children that the policy must make connect, sorted. They receive no call
// that would make them connect while another child is READY or CONNECTING. Wake returns a child at
// most once after each of its reports.
func (c *Core) Wake() []string {
	if all := c.State(); all != Ready && all != Connecting {
		return nil
	}
	idle := slices.DeleteFunc(c.In(Idle), func(name string) bool { return c.children[name].woken })
	for _, name := range idle {
		c.children[name].woken = true
	}
	return idle
}

// CountsAs returns the state with which the aggregation counts an existing child.
func (c *Core) CountsAs(name string) State { return c.children[name].counts() }

// Has reports whether a child is configured.
func (c *Core) Has(name string) bool {
	child, ok := c.children[name]
	return ok && !child.retained
}
