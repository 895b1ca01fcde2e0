// Package outlierdetection decides which endpoints get no calls for a while, because of
// how their calls ended (gRFC A50, and A61 for endpoints in place of addresses). It is a
// state machine: no goroutines, no locks, no clock, no gRPC types. Counters, the time
// and random numbers go in. The changes for the endpoints come out:
//
//	Sweep at 10s, a has 100 successes, b has 10 and 90 failures  ->  eject b
//	Sweep at 50s, its 30s are over                               ->  uneject b
//
// Beyond A50 there are consecutive failures, which eject at once, and tiers that are
// emptied; see Phase. docs/a50.md lists both with their reasons.
package outlierdetection

import (
	"math"
	"time"
)

// Config is what the core needs to know of the policy's configuration (A50, "LB Policy
// Config"). Nil pointers are algorithms that are not run.
type Config struct {
	Interval           time.Duration
	BaseEjectionTime   time.Duration
	MaxEjectionTime    time.Duration
	MaxEjectionPercent uint32

	SuccessRateEjection         *SuccessRateEjection
	FailurePercentageEjection   *FailurePercentageEjection
	ConsecutiveFailuresEjection *ConsecutiveFailuresEjection

	// ReportEmptied makes the policy tell its children of no ejection once nothing is
	// left, and report that instead; see Phase.
	ReportEmptied bool
}

// SuccessRateEjection ejects endpoints whose success rate is an outlier.
type SuccessRateEjection struct {
	StdevFactor           uint32 // of a thousand
	EnforcementPercentage uint32
	MinimumHosts          uint32
	RequestVolume         uint32
}

// FailurePercentageEjection ejects endpoints, each for itself, that fail too often.
type FailurePercentageEjection struct {
	Threshold             uint32
	EnforcementPercentage uint32
	MinimumHosts          uint32
	RequestVolume         uint32
}

// ConsecutiveFailuresEjection ejects endpoints that fail so often in a row.
type ConsecutiveFailuresEjection struct {
	Failures              uint32
	EnforcementPercentage uint32
}

// NoOp returns whether nothing is ever ejected, so that there is nothing to count.
func (c *Config) NoOp() bool {
	return c.SuccessRateEjection == nil && c.FailurePercentageEjection == nil && c.ConsecutiveFailuresEjection == nil
}

// Endpoint is A50's map entry. T is what the shell keeps with it.
type Endpoint[T any] struct {
	// Shell is what the shell keeps with the endpoint.
	Shell T
	// Successes and Failures are A50's inactive bucket: what the shell has counted
	// since the last Sweep. It sets them before the next one.
	Successes, Failures uint64

	present    bool      // it is in the policy's list
	connected  bool      // it could have calls
	ejected    bool      // A50's ejection timestamp is not null
	ejectedAt  time.Time // that timestamp
	by         Algorithm // what ejected it
	multiplier int64     // of the ejection time
	told       bool      // Change said that it is ejected
}

// Ejected reports whether the endpoint is ejected, even if its tier is emptied and the
// children are not told.
func (e *Endpoint[T]) Ejected() bool { return e.ejected }

// Told returns whether the children are to see the endpoint as ejected.
func (e *Endpoint[T]) Told() bool { return e.told }

// By returns what ejected the endpoint, if it is ejected.
func (e *Endpoint[T]) By() Algorithm { return e.by }

func (e *Endpoint[T]) calls() uint64 { return e.Successes + e.Failures }

// Algorithm is what ejected an endpoint.
type Algorithm uint8

// The algorithms.
const (
	None Algorithm = iota
	SuccessRate
	FailurePercentage
	ConsecutiveFailures
)

// String returns the name that metrics have for the algorithm.
func (a Algorithm) String() string {
	return [...]string{"none", "success_rate", "failure_percentage", "consecutive_failures"}[a]
}

// Change is what one event changed for an endpoint.
type Change[T any] struct {
	Endpoint *Endpoint[T]
	// Ejected is whether the children are to see it as ejected from now on.
	Ejected bool
}

// Ejection is one ejection that took place.
type Ejection[T any] struct {
	Endpoint *Endpoint[T]
	By       Algorithm
}

// Core is the state of one policy. Its methods are the events.
type Core[T any] struct {
	config    Config
	random    func() uint32
	endpoints []*Endpoint[T] // in the order of the list
	ejected   int            // how many of them are
	connected int            // how many of them are
	left      int            // how many are connected and not ejected
	dirty     bool           // settle is to look at each of them
	tells     bool           // the children are told of ejections
	reached   bool           // some endpoint has been connected since the last Sweep
	started   time.Time      // the timer start timestamp, zero for unset
	phase     Phase

	changes   []Change[T] // of the event being handled
	ejections []Ejection[T]
}

// New returns a core without endpoints. random returns random integers in [0, 100).
func New[T any](random func() uint32) *Core[T] { return &Core[T]{random: random} }

// NoOp returns whether nothing is ever ejected with the configuration in use.
func (c *Core[T]) NoOp() bool { return c.config.NoOp() }

// Endpoints returns the endpoints in the order of the list. It is not to be modified.
func (c *Core[T]) Endpoints() []*Endpoint[T] { return c.endpoints }

// Update takes a configuration and a list of endpoints: those that were in the last
// list, and stay, are the same pointers (A50, "Outlier Detection Behavior"). It returns
// whether all counters are to be reset.
func (c *Core[T]) Update(config Config, endpoints []*Endpoint[T], now time.Time) (reset bool) {
	c.config = config
	for _, e := range c.endpoints {
		e.present = false
	}
	for _, e := range endpoints {
		e.present = true
	}
	// A map entry that is removed is ejected no more, nor does it count as such.
	for _, e := range c.endpoints {
		if !e.present {
			c.forget(e)
		}
	}
	c.endpoints, c.dirty = endpoints, true
	c.connected, c.left = 0, 0
	for _, e := range endpoints {
		c.countConnected(e, 1)
	}
	switch {
	case config.NoOp():
		c.started = time.Time{}
		for _, e := range endpoints {
			c.forget(e)
		}
	case c.started.IsZero():
		c.started, reset = now, true
	}
	c.settle()
	return reset
}

// forget un-ejects an endpoint and forgets how often it was ejected.
func (c *Core[T]) forget(e *Endpoint[T]) {
	c.uneject(e)
	e.multiplier = 0
}

// Next returns when Sweep is due; false where it never is.
func (c *Core[T]) Next() (at time.Time, runs bool) {
	if c.started.IsZero() {
		return time.Time{}, false
	}
	return c.started.Add(c.config.Interval), true
}

// Sweep is what A50's timer does, once the shell has swapped the counters' buckets.
func (c *Core[T]) Sweep(now time.Time) {
	if c.config.NoOp() {
		return
	}
	c.started = now
	if c.config.SuccessRateEjection != nil {
		c.successRate(c.config.SuccessRateEjection)
	}
	if c.config.FailurePercentageEjection != nil {
		c.failurePercentage(c.config.FailurePercentageEjection)
	}
	if c.phase != Usable {
		c.judge(now)
	}
	byTime := c.phase == Usable || !c.reached
	for _, e := range c.endpoints {
		switch {
		case !e.ejected && e.multiplier > 0:
			e.multiplier--
		case e.ejected && byTime && now.After(c.EjectedUntil(e)):
			c.uneject(e)
		}
	}
	c.reached = c.connected > 0
	c.settle()
}

// ejectionTime returns min(base_ejection_time * multiplier, max(base_ejection_time,
// max_ejection_time)).
func (c *Core[T]) ejectionTime(e *Endpoint[T]) time.Duration {
	base := c.config.BaseEjectionTime
	longest := max(base, c.config.MaxEjectionTime)
	if base > 0 && e.multiplier > int64(math.MaxInt64/base) {
		return longest
	}
	return min(base*time.Duration(e.multiplier), longest)
}

// EjectedUntil returns when the time of an ejected endpoint is over: the first Sweep after
// it brings it back, unless its tier is emptied and was connected to meanwhile.
func (c *Core[T]) EjectedUntil(e *Endpoint[T]) time.Time {
	return e.ejectedAt.Add(c.ejectionTime(e))
}

// eject ejects an endpoint, by chance where its algorithm is not to be enforced always
// (A50, "Ejection and Un-ejection").
func (c *Core[T]) eject(e *Endpoint[T], now time.Time, enforcementPercentage uint32, by Algorithm) {
	if c.random() >= enforcementPercentage {
		return
	}
	c.setEjected(e, true)
	e.ejectedAt, e.by = now, by
	e.multiplier++
	c.ejections = append(c.ejections, Ejection[T]{e, by})
}

func (c *Core[T]) uneject(e *Endpoint[T]) {
	if e.ejected {
		c.setEjected(e, false)
	}
}

func (c *Core[T]) setEjected(e *Endpoint[T], ejected bool) {
	c.countConnected(e, -1)
	e.ejected, c.dirty = ejected, true
	c.countConnected(e, 1)
	if ejected {
		c.ejected++
	} else {
		c.ejected--
	}
}

// countConnected counts an endpoint in, by 1, or out again, by -1.
func (c *Core[T]) countConnected(e *Endpoint[T], by int) {
	if e.present && e.connected {
		c.reached = true
		c.connected += by
		if !e.ejected {
			c.left += by
		}
	}
}

// full returns whether no other endpoint may be ejected: "the maximum % of an address
// list that can be ejected", of which one may always be.
func (c *Core[T]) full() bool {
	return c.ejected > 0 && uint64(c.ejected+1)*100 > uint64(c.config.MaxEjectionPercent)*uint64(len(c.endpoints))
}

// Take returns what the events since the last call changed, in order.
func (c *Core[T]) Take() (changes []Change[T], ejections []Ejection[T]) {
	changes, ejections = c.changes, c.ejections
	c.changes, c.ejections = nil, nil
	return changes, ejections
}
