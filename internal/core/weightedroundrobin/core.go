// Package weightedroundrobin decides which endpoint is which child, which children get
// calls and with what weights, and when a new picker is worth its cost (gRFC A34). It is
// a state machine: no goroutines, no clock, no gRPC types. Package edf makes the sequence
// of picks. An update comes endpoint by endpoint:
//
//	Begin                                  ->
//	Endpoint(a, weight 1)                  ->  new child
//	Endpoint(b, weight 2)                  ->  child b as it was
//	Endpoint(a, weight 2)                  ->  child a again, which now has weight 3
//	Endpoints                              ->  remove c
//	End                                    ->  publish
package weightedroundrobin

import (
	"math"
	"time"
)

// State is a connectivity state.
type State uint8

// The states, the one that counts most first: the state of all children is the first
// that any child has.
const (
	Ready State = iota
	Connecting
	Idle
	TransientFailure
	states
)

// Config is what the core needs to know of the policy's configuration.
type Config struct {
	// StartRandom makes new children start at a random point of their interval.
	StartRandom bool
	// SlowStart says how the share of an endpoint grows after it became READY.
	SlowStart SlowStart
}

// Child is the child of one endpoint.
type Child[T any] struct {
	// Attached is what the shell keeps with the child.
	Attached T

	weight, before uint32 // at least 1; in this update and in the last
	state          State  // last reported
	failed         bool   // since it was last READY, or made
	unproven       bool   // see Core.Unproven
	readySince     time.Time
	update         uint64 // the last update that had the endpoint
}

// State returns what the child reported last, CONNECTING before that.
func (c *Child[T]) State() State { return c.state }

// Weight returns the child's weight. Those of all children sum to at most
// math.MaxUint32.
func (c *Child[T]) Weight() uint32 { return c.weight }

// Core is the children of one policy. T is what the shell keeps with a child.
type Core[T any] struct {
	config   Config
	children map[Key]*Child[T]
	order    []*Child[T] // in the order of the endpoints
	previous []*Child[T] // the order before the update
	count    [states]int // how many children are in each state
	sum      uint64      // the sum of the children's weights
	told     *Child[T]   // whose error calls fail with, while it is TRANSIENT_FAILURE
	updates  uint64      // how many there were

	publication
}

// New returns a core without children.
func New[T any]() *Core[T] { return &Core[T]{children: make(map[Key]*Child[T])} }

// Order returns the children in the order of the endpoints. It is never modified.
func (c *Core[T]) Order() []*Child[T] { return c.order }

// Count returns how many children are in each state.
func (c *Core[T]) Count() [states]int { return c.count }

// Begin begins an update with about n endpoints.
func (c *Core[T]) Begin(config Config, n int) {
	c.updates++
	c.stale = c.stale || config != c.config
	c.config = config
	// A new slice: pickers and the shell hold the old one.
	c.previous, c.order = c.order, make([]*Child[T], 0, n)
}

// Which says which child the endpoint of an update is for.
type Which int

// The answers.
const (
	NewChild Which = iota // one that was made for it
	Known                 // one that there was
	Again                 // one that has had an endpoint in this update already
)

// Endpoint takes the next endpoint of the update. An endpoint that is given twice is
// one child at its first place, with the sum of the weights.
func (c *Core[T]) Endpoint(key Key, weight uint32) (*Child[T], Which) {
	child, known := c.children[key]
	if !known {
		child = &Child[T]{state: Connecting}
		c.children[key] = child
		c.count[Connecting]++
	}
	if child.update == c.updates {
		child.weight = addSaturating(child.weight, weight)
		return child, Again
	}
	child.update = c.updates
	child.before, child.weight = child.weight, max(1, weight)
	c.order = append(c.order, child)
	if known {
		return child, Known
	}
	return child, NewChild
}

// Endpoints ends the endpoints of the update. It returns the children that have lost
// their endpoints; what they report is to be ignored. given is the sum of the weights;
// if it is past math.MaxUint32 the weights are scaled down.
func (c *Core[T]) Endpoints() (removed []*Child[T], given uint64) {
	for key, child := range c.children {
		if child.update != c.updates {
			delete(c.children, key)
			c.count[child.state]--
			if c.told == child {
				c.told = nil
			}
			removed = append(removed, child)
		}
	}
	given = c.fitWeights()
	c.stale = c.stale || len(c.previous) != len(c.order)
	for i := 0; i < len(c.order) && !c.stale; i++ {
		child := c.order[i]
		c.stale = child != c.previous[i] || child.weight != child.before
	}
	c.previous = nil
	return removed, given
}

func (c *Core[T]) fitWeights() (given uint64) {
	for _, child := range c.order {
		given += uint64(child.weight)
	}
	c.sum = given
	if given <= math.MaxUint32 {
		return given
	}
	c.sum = 0
	for _, child := range c.order {
		child.weight = scaleDown(child.weight, given, len(c.order))
		c.sum += uint64(child.weight)
	}
	return given
}

// Reported notes a state that a child reported. It returns whether to ask the child to
// connect: this policy keeps its endpoints connected even while nobody calls, so that a
// parent's standby is ready. now is used for READY only.
func (c *Core[T]) Reported(child *Child[T], state State, now time.Time) (connect bool) {
	before := child.state
	child.state = state
	c.count[before]--
	c.count[state]++
	if before == Ready || state == Ready {
		c.stale = true
	}
	switch state {
	case Ready:
		if before != Ready {
			child.readySince = now
		}
		child.failed = false
	case TransientFailure:
		if c.told == nil || c.told.state != TransientFailure {
			c.told = child
		}
		// The first failure changes Parts, and each of them the error of calls.
		c.stale = c.stale || c.published == TransientFailure || !child.failed
		child.failed = true
	}
	return state == Idle
}

// State returns the policy's state: READY if any child is, else CONNECTING if any is,
// else IDLE if any is, else TRANSIENT_FAILURE; so, too, without children.
func (c *Core[T]) State() State {
	for state, n := range c.count {
		if n > 0 {
			return State(state)
		}
	}
	return TransientFailure
}

// Unproven notes whether the endpoint of a child is to show that it answers, before it
// counts as READY for Parts.
func (c *Core[T]) Unproven(child *Child[T], unproven bool) {
	c.stale = c.stale || child.unproven != unproven
	child.unproven = unproven
}

// Parts returns which part of the weight is READY, and which is READY and unproven, of that
// of all endpoints which are READY or have failed; and which part of all weight has failed. One that is connecting, for the first time
// or again, counts neither way until it has connected or failed: otherwise too little of a
// policy would be READY each time that it comes up, grows, or has to connect again. One that was
// unproven still counts as failed: that its connection ended proves nothing. One must be READY.
func (c *Core[T]) Parts() (ready, unproven, failed float64) {
	var good, doubtful, bad uint64
	for _, child := range c.order {
		switch {
		case child.state == Ready && child.unproven:
			doubtful += uint64(child.weight)
		case child.state == Ready:
			good += uint64(child.weight)
		case child.failed, child.unproven:
			bad += uint64(child.weight)
		}
	}
	all := float64(good + doubtful + bad)
	return float64(good) / all, float64(doubtful) / all, float64(bad) / float64(c.sum)
}

// Failed returns the child whose error calls fail with while the policy is
// TRANSIENT_FAILURE, nil without children. It stays the same one while that one fails:
// otherwise the reason would name another address at each look.
func (c *Core[T]) Failed() *Child[T] {
	if c.told != nil && c.told.state == TransientFailure {
		return c.told
	}
	if len(c.order) == 0 {
		return nil
	}
	return c.order[0] // all of them have failed
}
