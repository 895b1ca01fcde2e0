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

import "time"

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
	// left, and report that instead; see Phase. Only with it does an endpoint have to
	// prove itself; see Unproven.
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
	// Attached is what the shell keeps with the endpoint.
	Attached T
	// Successes and Failures are A50's inactive bucket: what the shell has counted
	// since the last Sweep. It sets them before the next one.
	Successes, Failures uint64
	// Answers and Refusals are how many of these calls began in the Epoch, where the
	// endpoint is Doubted.
	Answers, Refusals uint64
	// Unavailable says that the last failure was one as when a connection is lost. The
	// shell sets it before Failed and Sweep.
	Unavailable bool

	present    bool // it is in the policy's list
	index      int  // there
	connection Connection
	ejected    bool      // A50's ejection timestamp is not null
	ejectedAt  time.Time // that timestamp
	by         Algorithm // what ejected it
	ended      bool      // the calls for which it was ejected ended so that their connection may have
	lost       bool      // and it has
	multiplier int64     // of the ejection time
	unproven   bool      // see Unproven
	doubt      int       // its place in Core.doubted, from 1 on
	epoch      uint64    // see Epoch
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

// Outcome is what events changed, in order.
type Outcome[T any] struct {
	Changes   []Change[T]
	Ejections []Ejection[T]
	// Doubts are endpoints whose Epoch, or whether they are Doubted or Unproven, may have
	// changed.
	Doubts []*Endpoint[T]
}

// Change is what the children are to see of an endpoint.
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
	doubted   []*Endpoint[T] // those that are ejected or unproven, in any order
	counts    counts
	tells     bool           // the children are told of ejections
	touched   []*Endpoint[T] // of which the children may have to be told
	started   time.Time      // the timer start timestamp, zero for unset
	phase     Phase
	outcome   Outcome[T]
	looked    int // how many endpoints settle has looked at
}

// counts is how many endpoints of the list are what.
type counts struct {
	ejected    int
	unproven   int
	connecting int
	returning  int // connecting, and ejected by calls that ended with their connection
	connected  int
	lost       int // connected, and ejected by calls that ended with their connection
	sound      int // neither ejected nor unproven, and connected or connecting
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
	for i, e := range endpoints {
		e.present, e.index = true, i
	}
	// A map entry that is removed is ejected no more, nor does it count as such.
	for _, e := range c.endpoints {
		if !e.present {
			c.forget(e)
		}
	}
	c.endpoints, c.counts, c.doubted = endpoints, counts{}, nil
	for _, e := range endpoints {
		e.doubt = 0
		c.count(e, 1)
		c.list(e)
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
	if !config.ReportEmptied {
		for _, e := range endpoints {
			c.set(e, e.ejected, false)
		}
	}
	c.settle()
	return reset
}

// forget un-ejects an endpoint and forgets how often it was ejected.
func (c *Core[T]) forget(e *Endpoint[T]) {
	c.set(e, false, false)
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
	byTime := c.phase == Usable || c.judge(now)
	for _, e := range c.endpoints {
		switch {
		case !e.ejected && !e.unproven && e.multiplier > 0:
			e.multiplier--
		case e.ejected && byTime && now.After(c.EjectedUntil(e)):
			c.set(e, false, c.config.ReportEmptied)
		}
	}
	c.settle()
}

// count counts an endpoint in, by 1, or out again, by -1.
func (c *Core[T]) count(e *Endpoint[T], by int) {
	if !e.present {
		return
	}
	if e.ejected {
		c.counts.ejected += by
	}
	if e.unproven {
		c.counts.unproven += by
	}
	switch e.connection {
	case Connecting:
		c.counts.connecting += by
		if e.ejected && e.lost {
			c.counts.returning += by
		}
	case Connected:
		c.counts.connected += by
		if e.ejected && e.lost {
			c.counts.lost += by
		}
	case Broken, Absent:
		return
	}
	if !e.ejected && !e.unproven {
		c.counts.sound += by
	}
}

// Take returns what the events since the last call changed.
func (c *Core[T]) Take() Outcome[T] {
	outcome := c.outcome
	c.outcome = Outcome[T]{}
	return outcome
}
