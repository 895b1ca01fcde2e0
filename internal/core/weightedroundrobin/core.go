// Package weightedroundrobin decides which endpoints have children, which children receive calls
// with which weights, and when a new picker is published (gRFC A34). It is a state machine without
// goroutines, a clock or gRPC types. Package edf computes the sequence of picks. An update is a
// sequence of calls:
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

// State is a connectivity state of gRPC, without SHUTDOWN.
type State uint8

// The states, in the order of precedence: the policy is in the first state that any child is in.
const (
	Ready State = iota
	Connecting
	Idle
	TransientFailure
	states
)

// Config is the part of the configuration that this package needs.
type Config struct {
	// StartRandom makes each new child start at a random point of its interval between two picks,
	// instead of at the beginning.
	StartRandom bool
	SlowStart   SlowStart
}

// Child is the child policy of one endpoint.
type Child[T any] struct {
	Attached T

	weight, before uint32 // in the current update and in the one before it; at least 1
	state          State
	failed         bool // the child has failed, and has not become READY since
	unproven       bool
	readySince     time.Time
	update         uint64
}

// State returns the last state that the child reported. It is CONNECTING before the first report.
func (c *Child[T]) State() State { return c.state }

// Weight returns the child's weight. The weights of all children add up to at most math.MaxUint32.
func (c *Child[T]) Weight() uint32 { return c.weight }

// Core is the state of one policy. T is the type of the data that the policy attaches to each
// child.
type Core[T any] struct {
	config     Config
	children   map[Key]*Child[T]
	order      []*Child[T]
	previous   []*Child[T]
	count      [states]int
	sum        uint64
	errorChild *Child[T] // the child whose error calls get if all children have failed; see Failed
	updates    uint64

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
	// Begin allocates a new slice, because the caller may still use the old one.
	c.previous, c.order = c.order, make([]*Child[T], 0, n)
}

// Which tells how Endpoint found the child that it returns.
type Which int

// The values of Which.
const (
	NewChild Which = iota // created for this endpoint
	Known                 // has existed since an earlier update
	Again                 // already returned in this update, for a duplicate of the endpoint
)

// Endpoint returns the child for the next endpoint of an update. Duplicates of an endpoint share a
// child, which has the position of the first and the sum of all weights.
func (c *Core[T]) Endpoint(key Key, weight uint32) (*Child[T], Which) {
	child, known := c.children[key]
	if !known {
		child = &Child[T]{state: Connecting}
		c.children[key] = child
		c.count[Connecting]++
	}
	which := c.Same(child, weight)
	if !known {
		which = NewChild
	}
	return child, which
}

// Same is Endpoint for callers that know the child of the endpoint from the last update. It needs
// no lookup.
func (c *Core[T]) Same(child *Child[T], weight uint32) Which {
	if child.update == c.updates {
		child.weight = addSaturating(child.weight, weight)
		return Again
	}
	child.update = c.updates
	child.before, child.weight = child.weight, max(1, weight)
	c.order = append(c.order, child)
	return Known
}

// Previous returns the children of the last update, in order. It may be called only during an
// update.
func (c *Core[T]) Previous() []*Child[T] { return c.previous }

// Endpoints is called after the last endpoint. It returns the children to remove, whose later
// reports must not be passed to Reported, and the sum of the given weights. If this sum exceeds
// math.MaxUint32, the weights of the children are scaled down.
func (c *Core[T]) Endpoints() (removed []*Child[T], given uint64) {
	for key, child := range c.children {
		if len(c.children) == len(c.order) {
			break
		}
		if child.update != c.updates {
			delete(c.children, key)
			c.count[child.state]--
			if c.errorChild == child {
				c.errorChild = nil
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

// Reported is called when a child reports a state. It returns true if the policy must make the
// child connect. An IDLE endpoint is connected even if there are no calls, so that the policy can
// serve as a warm standby. now is needed only for READY.
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
		if c.errorChild == nil || c.errorChild.state != TransientFailure {
			c.errorChild = child
		}
		// Parts changes when a child fails for the first time. Later failures matter only if all children
		// have failed, because the error of calls may then change.
		c.stale = c.stale || c.published == TransientFailure || !child.failed
		child.failed = true
	}
	return state == Idle
}

// State returns the state of the policy: READY if any child is READY, else CONNECTING if any is
// CONNECTING, else IDLE if any is IDLE, else TRANSIENT_FAILURE.
func (c *Core[T]) State() State {
	for state, n := range c.count {
		if n > 0 {
			return State(state)
		}
	}
	return TransientFailure
}

// Unproven records whether an endpoint must answer a call before Parts counts it as READY. Outlier
// detection requires this after an ejection (docs/a50.md).
func (c *Core[T]) Unproven(child *Child[T], unproven bool) {
	c.stale = c.stale || child.unproven != unproven
	child.unproven = unproven
}

// Parts returns three shares of weight. At least one endpoint must be READY.
//
// ready and unproven refer to the endpoints that are READY or have failed: ready is the share of
// READY endpoints, and unproven is the share of unproven ones, which ready does not include. failed
// is the share of all endpoints that have failed.
//
// An endpoint that is connecting and has not failed counts in neither ready nor unproven.
// Otherwise, the READY share would drop whenever endpoints are added or reconnect. An unproven
// endpoint that reconnects counts as failed, because a lost connection does not show that the
// endpoint has recovered.
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

// Failed returns the child whose error calls get, or nil if there is no child. It returns the same
// child until that child recovers, so that the error does not change with each failure.
func (c *Core[T]) Failed() *Child[T] {
	if c.errorChild != nil && c.errorChild.state == TransientFailure {
		return c.errorChild
	}
	if len(c.order) == 0 {
		return nil
	}
	return c.order[0]
}
