// Package weightedtarget decides which children weighted_target has, and makes one
// connectivity state of theirs (gRFC A28). It is a state machine: no goroutines, no
// clock, no gRPC types. Events go in, and actions come out:
//
//	update to b and c, retention 60s  ->  retain a for 60s, update b, create c, update c
package weightedtarget

import (
	"maps"
	"slices"
	"time"
)

// State is a connectivity state.
type State int

// The states, the one that counts most first: the state of all children is the first
// that any child has.
const (
	Ready State = iota
	Connecting
	Idle
	TransientFailure
)

// String returns the state's name in gRPC.
func (s State) String() string {
	return [...]string{"READY", "CONNECTING", "IDLE", "TRANSIENT_FAILURE"}[s]
}

// Action is something that the shell is to do, in order.
type Action struct {
	Kind  Kind
	Child string
	After time.Duration // how long a child is retained
}

// Kind is what an Action asks for.
type Kind int

// The kinds.
const (
	Create  Kind = iota // a child; an Update follows
	Update              // a child's configuration and endpoints
	Retain              // a child that is not configured: call RetentionEnded after After
	Return              // a child that was retained, and is configured again
	Destroy             // a child
)

// Core is the children of one policy. The zero value has none. It is not safe for
// concurrent use.
type Core struct {
	children  map[string]*child
	published State // the last state published
	stale     bool  // the last publication is out of date
	balanced  balanced
}

type child struct {
	state    State // last reported, but for CONNECTING after a failure
	refused  bool  // it returned an error from its last update, and has reported nothing since
	retained bool  // it is not configured, and kept for a time
	woken    bool  // told to leave IDLE since its last report
	reserve  bool  // it has no share: see Core.SetBalance
	failed   float64
}

// out reports whether the child gets no calls, whatever it counts as.
func (ch *child) out() bool { return ch.retained || ch.reserve }

// counts is what the child counts as.
func (ch *child) counts() State {
	if ch.refused {
		return TransientFailure
	}
	return ch.state
}

// Update takes the names of all configured children. Others are destroyed, or retained
// for a time. The policy's state is to be published in any case.
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

// configure updates a child that is configured, and makes it where it is needed.
func (c *Core) configure(name string) (actions []Action) {
	switch ch := c.children[name]; {
	case ch == nil && c.isReserve(name):
		return nil
	case ch == nil:
		// It counts as CONNECTING until it reports, so that calls wait for it where
		// the others have failed.
		c.children[name] = &child{state: Connecting}
		actions = append(actions, Action{Kind: Create, Child: name})
	case ch.retained:
		ch.retained = false
		actions = append(actions, Action{Kind: Return, Child: name})
	}
	actions = append(actions, Action{Kind: Update, Child: name})
	return append(actions, c.setReserve(name)...)
}

// RetentionEnded handles the end of a child's retention.
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

// Report notes a state that a child reported, and returns whether the child now counts
// as that. A child that failed and reports CONNECTING still counts as failed: otherwise
// children that never connect would keep calls waiting for ever. Reports of unknown
// children are ignored.
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

// Refuse notes that a child refused its update. That counts until it reports or is
// updated again.
func (c *Core) Refuse(name string) {
	if child, ok := c.children[name]; ok {
		before := child.counts()
		child.refused = true
		c.changed(child, before)
	}
}

// changed notes a change of what a child counts as, or of its picker.
func (c *Core) changed(child *child, before State) {
	now := child.counts()
	// A failure changes which part of the READY ones there is.
	failure := before != now && (before == TransientFailure || now == TransientFailure)
	if !child.retained && (before == c.published || now == c.published || failure || c.State() != c.published) {
		c.stale = true
	}
}

// Stale returns whether the last publication is out of date.
func (c *Core) Stale() bool { return c.stale }

// Publish returns the state to publish, and notes it as published.
func (c *Core) Publish() State {
	c.published, c.stale = c.State(), false
	return c.published
}

// State returns the state of all children that are configured: READY if any child is,
// else CONNECTING if any is, else IDLE if any is, else TRANSIENT_FAILURE; so, too,
// without children. Of reserves it counts that one is READY.
func (c *Core) State() State {
	all := TransientFailure
	for _, child := range c.children {
		if !child.out() || child.reserve && child.counts() == Ready {
			all = min(all, child.counts())
		}
	}
	return all
}

// In returns the names of the configured children that count as state, sorted: those with a share,
// or, if no such child is READY, the READY reserves.
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

// Wake returns the configured children that are IDLE while another one is READY or
// CONNECTING, sorted. They are to be told to connect: calls go to the READY ones, or wait, and
// so would make none of these connect. Each is returned once for each of its reports.
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

// CountsAs returns what a child counts as. The child must exist.
func (c *Core) CountsAs(name string) State { return c.children[name].counts() }

// Has returns whether a child is configured.
func (c *Core) Has(name string) bool {
	child, ok := c.children[name]
	return ok && !child.retained
}
