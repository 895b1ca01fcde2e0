// Package weightedroundrobin decides which endpoints get children, which children get calls and
// with which weights, and when to publish a new picker (gRFC A34). It's a state machine without
// goroutines, a clock or gRPC types. The sequence of picks comes from package edf. Here's what
// happens in an update:
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

type State uint8

// In order of precedence: if any child is READY, so is the policy, and so on. SHUTDOWN isn't used.
const (
	Ready State = iota
	Connecting
	Idle
	TransientFailure
	states
)

type Config struct {
	// StartRandom starts each new child at a random point between two of its picks. Otherwise it
	// starts right after one.
	StartRandom bool
	SlowStart   SlowStart
}

type Child[T any] struct {
	Attached T

	key                    Key
	weight, previousWeight uint32        // in the current and the previous update; at least 1
	readySince             time.Duration // measured from Core.epoch
	lastUpdate             uint32
	state                  State
}

func (c *Child[T]) State() State { return c.state }

func (c *Child[T]) Key() Key { return c.key }

// Weight returns the child's weight. The weights never add up to more than math.MaxUint32.
func (c *Child[T]) Weight() uint32 { return c.weight }

// Core is the state of one policy. T is whatever the policy wants to attach to a child.
type Core[T any] struct {
	config      Config
	children    map[Key]*Child[T]
	order       []*Child[T]
	previous    []*Child[T]
	count       [states]int
	sum         uint64
	reweighted  int       // number of children with a new weight in this update
	errorChild  *Child[T] // if all children have failed, calls get this one's error (see Failed)
	updateCount uint32
	epoch       time.Time // first time that any child was READY

	publication
}

func New[T any]() *Core[T] { return &Core[T]{children: make(map[Key]*Child[T])} }

// Order returns the children in the order of the endpoints. The slice is never modified.
func (c *Core[T]) Order() []*Child[T] { return c.order }

func (c *Core[T]) Count() [states]int { return c.count }

func (c *Core[T]) Begin(config Config, n int) {
	c.updateCount++
	c.outdated = c.outdated || config != c.config
	c.config = config
	// The caller may still be using the old slice.
	c.previous, c.order = c.order, make([]*Child[T], 0, n)
	c.sum, c.reweighted = 0, 0
}

type Origin int

const (
	NewChild Origin = iota
	Known
	Duplicate // it was returned earlier in this update, for a duplicate of the endpoint
)

// Endpoint returns the child for the next endpoint of an update. If an endpoint is listed more than
// once, there's just one child for it, in the position of the first, and the weights are added up.
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

// KnownEndpoint is like Endpoint but saves the lookup if the caller already has the child from the
// last update.
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
	c.sum += uint64(sign) * uint64(child.weight) // wraps around, so adding a negative number works
	if child.weight != child.previousWeight {
		c.reweighted += sign
	}
}

// Previous returns the children of the last update, in order. Only call it during an update.
func (c *Core[T]) Previous() []*Child[T] { return c.previous }

// Endpoints is called after the last endpoint of an update. It returns the children to remove and
// the sum of all endpoints' weights. If that exceeds math.MaxUint32, we scale the children's
// weights down. Don't call Reported for a removed child from here on.
func (c *Core[T]) Endpoints() (removed []*Child[T], total uint64) {
	for _, child := range c.previous {
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

// Reported is called when a child reports a state. It returns true if the policy has to tell the
// child to connect. We want even IDLE endpoints without calls to connect, so that the policy can be
// a warm standby. now is only used if the state is READY.
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
		// If all children have failed, calls may now get a different error.
		c.outdated = c.outdated || c.published == TransientFailure
	}
	return state == Idle
}

// State returns the policy's state. It's READY if any child is, otherwise CONNECTING if any is,
// otherwise IDLE if any is, and otherwise TRANSIENT_FAILURE.
func (c *Core[T]) State() State {
	for state, n := range c.count {
		if n > 0 {
			return State(state)
		}
	}
	return TransientFailure
}

// Failed returns the child whose error calls get if all children have failed, or nil if there are
// none. We stay with that child until it recovers, so that the error doesn't change with every
// failure.
func (c *Core[T]) Failed() *Child[T] {
	if c.errorChild != nil && c.errorChild.state == TransientFailure {
		return c.errorChild
	}
	if len(c.order) == 0 {
		return nil
	}
	return c.order[0]
}
