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
	// StartRandom makes each new child start at a random point of the interval between two of its
	// picks, instead of at the beginning of the interval.
	StartRandom bool
	SlowStart   SlowStart
}

// Child is the child policy of one endpoint.
type Child[T any] struct {
	Attached T

	key                    Key
	weight, previousWeight uint32        // the weights in the current and in the previous update; at least 1
	readySince             time.Duration // since Core.epoch
	lastUpdate             uint32        // the number of the last update that contains the child
	state                  State
}

// State returns the last state that the child reported. It is CONNECTING before the first report.
func (c *Child[T]) State() State { return c.state }

// Key returns the key of the child's endpoint.
func (c *Child[T]) Key() Key { return c.key }

// Weight returns the child's weight. The weights of all children add up to at most math.MaxUint32.
func (c *Child[T]) Weight() uint32 { return c.weight }

// Core is the state of one policy. T is the type of the data that the policy attaches to each
// child.
type Core[T any] struct {
	config      Config
	children    map[Key]*Child[T]
	order       []*Child[T]
	previous    []*Child[T]
	count       [states]int
	sum         uint64
	reweighted  int       // number of children whose weight an update has changed
	errorChild  *Child[T] // if all children have failed, calls get the error of this child (see Failed)
	updateCount uint32
	epoch       time.Time // when a child was READY for the first time, or zero

	publication
}

// New returns a core without children.
func New[T any]() *Core[T] { return &Core[T]{children: make(map[Key]*Child[T])} }

// Order returns the children in the order of the endpoints. The slice is never modified.
func (c *Core[T]) Order() []*Child[T] { return c.order }

// Count returns the number of children in each state.
func (c *Core[T]) Count() [states]int { return c.count }

// Begin begins an update. n is the approximate number of endpoints.
func (c *Core[T]) Begin(config Config, n int) {
	c.updateCount++
	c.outdated = c.outdated || config != c.config
	c.config = config
	// The caller may still use the old slice, so c.order is a new one.
	c.previous, c.order = c.order, make([]*Child[T], 0, n)
	c.sum, c.reweighted = 0, 0
}

// Origin describes whether a child that Endpoint returns is new.
type Origin int

// The values of Origin.
const (
	NewChild  Origin = iota // the child was created for this endpoint
	Known                   // the child has existed since an earlier update
	Duplicate               // the child was already returned in this update, for a duplicate of the endpoint
)

// Endpoint returns the child for the next endpoint of an update. Duplicates of an endpoint share
// one child. This child has the position of the first duplicate, and the sum of the weights.
func (c *Core[T]) Endpoint(key Key, weight uint32) (*Child[T], Origin) {
	if child := c.children[key]; child != nil {
		return child, c.KnownEndpoint(child, weight)
	}
	child := &Child[T]{key: key, state: Connecting}
	c.children[key] = child
	c.count[Connecting]++
	c.KnownEndpoint(child, weight)
	return child, NewChild
}

// KnownEndpoint is like Endpoint, for an endpoint whose child the caller already knows from the
// last update. It avoids the lookup.
func (c *Core[T]) KnownEndpoint(child *Child[T], weight uint32) Origin {
	if child.lastUpdate == c.updateCount {
		c.countWeight(child, -1)
		child.weight = addSaturating(child.weight, weight)
		c.countWeight(child, 1)
		return Duplicate
	}
	child.lastUpdate = c.updateCount
	child.previousWeight, child.weight = child.weight, max(1, weight)
	c.countWeight(child, 1)
	i := len(c.order)
	c.outdated = c.outdated || i >= len(c.previous) || c.previous[i] != child
	c.order = append(c.order, child)
	return Known
}

func (c *Core[T]) countWeight(child *Child[T], sign int) {
	c.sum += uint64(sign) * uint64(child.weight) // modulo 2^64
	if child.weight != child.previousWeight {
		c.reweighted += sign
	}
}

// Previous returns the children of the last update, in order. It may be called only during an
// update.
func (c *Core[T]) Previous() []*Child[T] { return c.previous }

// Endpoints is called after the last endpoint of an update. It returns the children to remove, and
// the sum of the weights of all endpoints. After it, Reported must not be called for a removed
// child. If the sum exceeds math.MaxUint32, the weights of the children are scaled down.
func (c *Core[T]) Endpoints() (removed []*Child[T], total uint64) {
	for _, child := range c.previous {
		if len(c.children) == len(c.order) {
			break
		}
		if child.lastUpdate != c.updateCount {
			delete(c.children, child.key)
			c.count[child.state]--
			if c.errorChild == child {
				c.errorChild = nil
			}
			removed = append(removed, child)
		}
	}
	if total = c.sum; total > math.MaxUint32 {
		c.sum, c.reweighted = 0, 0
		for _, child := range c.order {
			child.weight = scaleDown(child.weight, total, len(c.order))
			c.countWeight(child, 1)
		}
	}
	c.outdated = c.outdated || c.reweighted > 0 || len(c.previous) != len(c.order)
	c.previous = nil
	return removed, total
}

// Reported is called when a child reports a state. It returns true if the policy must make the
// child connect. An IDLE endpoint is connected even if no calls arrive, so that the policy can
// serve as a warm standby. now is used only if the state is READY.
func (c *Core[T]) Reported(child *Child[T], state State, now time.Time) (connect bool) {
	before := child.state
	child.state = state
	c.count[before]--
	c.count[state]++
	if before == Ready || state == Ready {
		c.outdated = true
	}
	switch state {
	case Ready:
		if c.epoch.IsZero() {
			c.epoch = now
		}
		if before != Ready {
			child.readySince = now.Sub(c.epoch)
		}
	case TransientFailure:
		if c.errorChild == nil || c.errorChild.state != TransientFailure {
			c.errorChild = child
		}
		// If all children have failed, the error of calls may change.
		c.outdated = c.outdated || c.published == TransientFailure
	}
	return state == Idle
}

// State returns the state of the policy: the first of READY, CONNECTING, IDLE and TRANSIENT_FAILURE
// that any child is in.
func (c *Core[T]) State() State {
	for state, n := range c.count {
		if n > 0 {
			return State(state)
		}
	}
	return TransientFailure
}

// Failed returns the child whose error the calls get if all children have failed, or nil if there
// are no children. It returns the same child until that child recovers, so that the error does not
// change with each failure.
func (c *Core[T]) Failed() *Child[T] {
	if c.errorChild != nil && c.errorChild.state == TransientFailure {
		return c.errorChild
	}
	if len(c.order) == 0 {
		return nil
	}
	return c.order[0]
}
