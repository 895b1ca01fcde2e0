// Package weightedtarget decides which children weighted_target has, and aggregates their
// connectivity states (gRFC A28). It's a state machine without goroutines, a clock or gRPC types,
// which turns events into actions:
//
//	update from a and b to b and c, retention 60s  ->  retain a for 60s, update b,
//	                                                   create c, update c
package weightedtarget

import (
	"maps"
	"slices"
	"time"
)

type State int

// In order of precedence: if any child is READY, so is the policy, and so on. SHUTDOWN isn't used.
const (
	Ready State = iota
	Connecting
	Idle
	TransientFailure
)

func (s State) String() string {
	return [...]string{"READY", "CONNECTING", "IDLE", "TRANSIENT_FAILURE"}[s]
}

type Action struct {
	Kind  Kind
	Child string
	After time.Duration // for Retain: how long to keep the child
}

type Kind int

const (
	Create Kind = iota // an Update always follows
	Update
	Retain // send the child no calls, and call RetentionEnded after the time After
	Return
	Destroy
)

type Core struct {
	children    map[string]*child
	published   State
	mustPublish bool
}

type child struct {
	state        State // may be older than the last report (see Report)
	refused      bool  // it refused its last update and hasn't reported since
	retained     bool
	wakeReturned bool // returned by Wake since its last report
}

func (ch *child) effectiveState() State {
	if ch.refused {
		return TransientFailure
	}
	return ch.state
}

// Update sets the configured children. We destroy children that aren't configured anymore once the
// retention time has passed. The policy must call Publish afterwards.
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
		// A new child is CONNECTING. If all the others have failed, calls wait for it.
		c.children[name] = &child{state: Connecting}
		actions = append(actions, Action{Kind: Create, Child: name})
	case ch.retained:
		ch.retained = false
		actions = append(actions, Action{Kind: Return, Child: name})
	}
	return append(actions, Action{Kind: Update, Child: name})
}

func (c *Core) RetentionEnded(name string) []Action {
	if child, ok := c.children[name]; !ok || !child.retained {
		return nil
	}
	delete(c.children, name)
	return []Action{{Kind: Destroy, Child: name}}
}

// Report records the state that a child reports. counts is false if we keep aggregating its
// previous state. We do that for CONNECTING after a failure. Otherwise calls would wait for a child
// that may never manage to connect.
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

// Refuse records that a child has refused its update. It counts as failed until its next report or
// update.
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

func (c *Core) Stale() bool { return c.mustPublish }

func (c *Core) Publish() State {
	c.published, c.mustPublish = c.State(), false
	return c.published
}

// State returns the policy's state. It's READY if any child is, otherwise CONNECTING if any is,
// otherwise IDLE if any is, and otherwise TRANSIENT_FAILURE. Retained children don't count.
func (c *Core) State() State {
	aggregate := TransientFailure
	for _, child := range c.children {
		if !child.retained {
			aggregate = min(aggregate, child.effectiveState())
		}
	}
	return aggregate
}

func (c *Core) In(state State) []string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(c.children)) {
		if child := c.children[name]; child.effectiveState() == state && !child.retained {
			names = append(names, name)
		}
	}
	return names
}

// Wake returns the names of the IDLE children that the policy must tell to connect, sorted. While
// another child is READY or CONNECTING, they won't get the calls that would normally do that. We
// return each child at most once per report.
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

// CountsAs returns the state that we aggregate for a child. The child must exist.
func (c *Core) CountsAs(name string) State { return c.children[name].effectiveState() }

func (c *Core) Has(name string) bool {
	child, ok := c.children[name]
	return ok && !child.retained
}
