// Package weightedtarget makes one connectivity state out of those of many children, as
// gRFC A28 has it for weighted_target. It is a state machine: no goroutines, no
// clock, no gRPC types.
package weightedtarget

import (
	"maps"
	"slices"
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

// Children are the children of one policy. The zero value has none. It is not safe
// for concurrent use.
type Children struct {
	states map[string]State // the effective ones
}

// Add adds a child, which counts as CONNECTING until it reports, so that calls wait
// for it where the others have failed. A child that is there already is left as it is.
func (c *Children) Add(name string) {
	if c.states == nil {
		c.states = make(map[string]State)
	}
	if _, ok := c.states[name]; !ok {
		c.states[name] = Connecting
	}
}

// Remove removes a child, if it is there.
func (c *Children) Remove(name string) { delete(c.states, name) }

// Report notes a state that a child reported, and returns whether it is what the
// child now counts as. A child that had failed and reports CONNECTING still counts as
// failed: otherwise children that never connect would keep calls waiting for ever.
// Reports of children that are not there are ignored.
func (c *Children) Report(name string, state State) (counts bool) {
	last, ok := c.states[name]
	if !ok || last == TransientFailure && state == Connecting {
		return false
	}
	c.states[name] = state
	return true
}

// State returns the state of all children: READY if any child is, else CONNECTING if
// any is, else IDLE if any is, else TRANSIENT_FAILURE; so, too, without children.
func (c *Children) State() State {
	all := TransientFailure
	for _, state := range c.states {
		all = min(all, state)
	}
	return all
}

// In returns the names of the children that count as state, sorted.
func (c *Children) In(state State) []string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(c.states)) {
		if c.states[name] == state {
			names = append(names, name)
		}
	}
	return names
}

// Len returns how many children there are.
func (c *Children) Len() int { return len(c.states) }
