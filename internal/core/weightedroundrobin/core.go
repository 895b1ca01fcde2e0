// Package weightedroundrobin decides which endpoints have children, which children receive
// calls with which weights, and when a new picker is made (gRFC A34). It is a state machine
// without goroutines, a clock or gRPC types. Package edf computes the sequence of picks. An
// update is a sequence of calls, such as:
//
//	Begin                                  ->
//	Endpoint(a, weight 1)                  ->  new child
//	Endpoint(b, weight 2)                  ->  known child b
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

// The states are in order of precedence. The aggregated state is the first one that any child has.
const (
	Ready State = iota
	Connecting
	Idle
	TransientFailure
	states
)

// Config is the part of the configuration that the core uses.
type Config struct {
	// StartRandom makes new children start at a random point of their interval.
	StartRandom bool
	SlowStart   SlowStart
}

// Child is the child of one endpoint.
type Child[T any] struct {
	// Attached is the shell's data.
	Attached T

	weight, before uint32 // the weight in this update and in the last one; at least 1
	state          State  // the last reported state
	failed         bool   // the child has failed since it was created or last READY
	unproven       bool   // see Core.Unproven
	readySince     time.Time
	update         uint64 // the number of the last update that contained the endpoint
}

// State returns the last state that the child reported. It is CONNECTING before the first report.
func (c *Child[T]) State() State { return c.state }

// Weight returns the child's weight. The weights of all children sum to at most math.MaxUint32.
func (c *Child[T]) Weight() uint32 { return c.weight }

// Core contains the children of one policy. T is the shell's data.
type Core[T any] struct {
	config   Config
	children map[Key]*Child[T]
	order    []*Child[T] // in the order of the endpoints
	previous []*Child[T] // the order before the update
	count    [states]int // number of children in each state
	sum      uint64      // sum of the children's weights
	told     *Child[T]   // the child whose error is the error of calls in TRANSIENT_FAILURE
	updates  uint64      // number of updates

	publication
}

// New returns a core without children.
func New[T any]() *Core[T] { return &Core[T]{children: make(map[Key]*Child[T])} }

// Order returns the children in the order of the endpoints. The slice is never modified.
func (c *Core[T]) Order() []*Child[T] { return c.order }

// Count returns the number of children in each state.
func (c *Core[T]) Count() [states]int { return c.count }

// Begin begins an update with about n endpoints.
func (c *Core[T]) Begin(config Config, n int) {
	c.updates++
	c.stale = c.stale || config != c.config
	c.config = config
	// Do not reuse the old slice, which the shell may still use.
	c.previous, c.order = c.order, make([]*Child[T], 0, n)
}

// Which is the kind of child that Endpoint returns.
type Which int

// These are the kinds of children.
const (
	NewChild Which = iota // created for this endpoint
	Known                 // known from an earlier update
	Again                 // returned before in this update
)

// Endpoint returns the child of the next endpoint. A duplicate endpoint keeps its first
// position and has the sum of the weights.
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

// Endpoints ends the list of endpoints. It returns the children that were removed, whose
// reports must be ignored, and the sum of the weights. It scales weights down if the sum
// exceeds math.MaxUint32.
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

// Reported handles a state that a child reports, and reports whether the child must connect.
// Endpoints stay connected even without calls, so that the policy can be a warm standby. now is
// used only if the state is READY.
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
		// The first failure changes Parts. Every failure may change the error of a failed
		// policy.
		c.stale = c.stale || c.published == TransientFailure || !child.failed
		child.failed = true
	}
	return state == Idle
}

// State returns READY if any child is READY, else CONNECTING if any is CONNECTING, else IDLE if any
// is IDLE, else TRANSIENT_FAILURE.
func (c *Core[T]) State() State {
	for state, n := range c.count {
		if n > 0 {
			return State(state)
		}
	}
	return TransientFailure
}

// Unproven sets whether an endpoint must answer a call before it counts as READY in Parts.
func (c *Core[T]) Unproven(child *Child[T], unproven bool) {
	c.stale = c.stale || child.unproven != unproven
	child.unproven = unproven
}

// Parts returns three shares. ready and unproven are the shares of proven and unproven READY
// endpoints in the weight of all endpoints that are READY or have failed. failed is the share of
// failed endpoints in the weight of all endpoints. At least one endpoint must be READY.
//
// A connecting endpoint does not count; otherwise the READY share would be too small while the
// policy starts, grows or reconnects. An unproven endpoint that reconnects counts as failed,
// because a lost connection proves nothing.
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

// Failed returns the child whose error is the error of calls, or nil if there are no children. It
// returns the same child as long as that child fails, so that the error does not keep changing.
func (c *Core[T]) Failed() *Child[T] {
	if c.told != nil && c.told.state == TransientFailure {
		return c.told
	}
	if len(c.order) == 0 {
		return nil
	}
	return c.order[0] // all children have failed
}
