// Package outlierdetection decides which endpoints are ejected because their calls fail (gRFC A50,
// and A61 for endpoints with several addresses). An ejected endpoint receives no calls for a while.
// The package is a state machine without goroutines, locks, a clock or gRPC types. Its inputs are
// counts of calls, the time and random numbers; its outputs are ejections and their ends:
//
//	Sweep at 10s, a has 100 successes, b has 10 and 90 failures  ->  eject b
//	Sweep at 50s, the 30s of b are over                          ->  uneject b
//
// In addition to A50, it ejects endpoints immediately after consecutive failures, and it handles
// priorities whose endpoints are all ejected (see Phase). docs/a50.md gives the reasons for both.
package outlierdetection

import "time"

// Config is the part of the configuration that this package needs (A50, "LB Policy Config"). An
// algorithm whose field is nil does not run.
type Config struct {
	Interval           time.Duration
	BaseEjectionTime   time.Duration
	MaxEjectionTime    time.Duration
	MaxEjectionPercent uint32

	SuccessRateEjection         *SuccessRateEjection
	FailurePercentageEjection   *FailurePercentageEjection
	ConsecutiveFailuresEjection *ConsecutiveFailuresEjection

	// ReportEmptied makes the policy report to its parent that no usable endpoint is left, so that the
	// parent can use another priority (see Phase). If it is set, an endpoint must answer a call after
	// its ejection before it counts as usable again (see Unproven).
	ReportEmptied bool
}

// SuccessRateEjection ejects endpoints whose success rate is far below that of the others.
type SuccessRateEjection struct {
	StdevFactor           uint32 // in thousandths
	EnforcementPercentage uint32
	MinimumHosts          uint32
	RequestVolume         uint32
}

// FailurePercentageEjection ejects endpoints whose share of failed calls exceeds Threshold percent.
type FailurePercentageEjection struct {
	Threshold             uint32
	EnforcementPercentage uint32
	MinimumHosts          uint32
	RequestVolume         uint32
}

// ConsecutiveFailuresEjection ejects endpoints after Failures failed calls in a row.
type ConsecutiveFailuresEjection struct {
	Failures              uint32
	EnforcementPercentage uint32
}

// NoOp reports whether the configuration never ejects an endpoint.
func (c *Config) NoOp() bool {
	return c.SuccessRateEjection == nil && c.FailurePercentageEjection == nil && c.ConsecutiveFailuresEjection == nil
}

// Endpoint is an entry of A50's map. T is the type of the data that the policy attaches to it.
type Endpoint[T any] struct {
	Attached T
	// Successes and Failures are A50's inactive bucket. The policy sets them before each Sweep.
	Successes, Failures uint64
	// Answers and FailedAnswers count the calls that began in the current Epoch and have succeeded
	// or failed. The policy sets them only while Doubted is true.
	Answers, FailedAnswers uint64
	// Unavailable means that the last failed call ended with UNAVAILABLE, which is the status when
	// a connection is lost. The policy sets it before it calls Failed or Sweep.
	Unavailable bool

	// The following fields are in an order that saves memory: small ones are next to each other. There
	// may be tens of thousands of endpoints.
	present            bool
	connection         Connection
	ejected            bool // A50's ejection timestamp is set
	algorithm          Algorithm
	endedByUnavailable bool // the call that caused the ejection ended with UNAVAILABLE
	connectionLost     bool // the call that caused the ejection ended with UNAVAILABLE, and its connection is lost
	unproven           bool
	visiblyEjected     bool // the child policy sees the endpoint as ejected
	index              int32
	doubtedIndex       int32 // index in Core.doubted plus 1; 0 if the endpoint is not in this list
	epoch              uint64
	multiplier         int64 // A50's ejection time multiplier
	ejectedAt          time.Time
}

// Ejected reports whether the endpoint is ejected. The ejection may be hidden from the child policy
// (see VisiblyEjected).
func (e *Endpoint[T]) Ejected() bool { return e.ejected }

// VisiblyEjected reports whether the child policy sees the endpoint as ejected.
func (e *Endpoint[T]) VisiblyEjected() bool { return e.visiblyEjected }

// EjectedBy returns the algorithm that ejected the endpoint.
func (e *Endpoint[T]) EjectedBy() Algorithm { return e.algorithm }

func (e *Endpoint[T]) calls() uint64 { return e.Successes + e.Failures }

// Algorithm is an ejection algorithm.
type Algorithm uint8

// The ejection algorithms.
const (
	None Algorithm = iota
	SuccessRate
	FailurePercentage
	ConsecutiveFailures
)

// String returns the algorithm's name in metrics.
func (a Algorithm) String() string {
	return [...]string{"none", "success_rate", "failure_percentage", "consecutive_failures"}[a]
}

// Outcome lists what has changed since the last call of Take, in order.
type Outcome[T any] struct {
	Changes   []Change[T]
	Ejections []Ejection[T]
	// Doubts contains the endpoints for which the result of Epoch, Doubted or Unproven may have
	// changed.
	Doubts []*Endpoint[T]
}

// Change is the beginning or the end of an ejection, of which the policy must notify its child.
type Change[T any] struct {
	Endpoint *Endpoint[T]
	Ejected  bool
}

// Ejection is an ejection that has just begun.
type Ejection[T any] struct {
	Endpoint *Endpoint[T]
	By       Algorithm
}

// Core is the state of one policy.
type Core[T any] struct {
	config         Config
	random         func() uint32
	endpoints      []*Endpoint[T]
	doubted        []*Endpoint[T] // all endpoints whose Doubted is true, in any order
	counts         counts
	showsEjections bool           // the child policy sees ejections (see Phase)
	changed        []*Endpoint[T] // endpoints for which the result of VisiblyEjected may have to change
	started        time.Time      // A50's timer start timestamp, or zero
	phase          Phase
	outcome        Outcome[T]
	visited        int // number of endpoints that updateVisible has visited, for a test
}

type counts struct {
	ejected      int
	unproven     int
	connecting   int
	reconnecting int // reconnecting endpoints that were ejected because calls ended with their connection
	connected    int
	reconnected  int // reconnected endpoints that were ejected because calls ended with their connection
	sound        int
}

// New returns a core without endpoints. random must return integers in [0, 100).
func New[T any](random func() uint32) *Core[T] { return &Core[T]{random: random} }

// NoOp reports whether the current configuration never ejects an endpoint.
func (c *Core[T]) NoOp() bool { return c.config.NoOp() }

// Endpoints returns the endpoints in the order of the list. The caller must not modify the slice.
func (c *Core[T]) Endpoints() []*Endpoint[T] { return c.endpoints }

// Update sets the configuration and the endpoints (A50, "Outlier Detection Behavior"). An endpoint
// that was already in the list must have the same pointer as before. reset reports whether the
// policy must clear all its counters.
func (c *Core[T]) Update(config Config, endpoints []*Endpoint[T], now time.Time) (reset bool) {
	c.config = config
	for _, e := range c.endpoints {
		e.present = false
	}
	for i, e := range endpoints {
		e.present, e.index = true, int32(i)
	}
	for _, e := range c.endpoints {
		if !e.present {
			c.clearEjection(e)
		}
	}
	c.endpoints, c.counts, c.doubted = endpoints, counts{}, nil
	for _, e := range endpoints {
		e.doubtedIndex = 0
		c.addToCounts(e, 1)
		c.updateDoubted(e)
	}
	switch {
	case config.NoOp():
		c.started = time.Time{}
		for _, e := range endpoints {
			c.clearEjection(e)
		}
	case c.started.IsZero():
		c.started, reset = now, true
	}
	if !config.ReportEmptied {
		for _, e := range endpoints {
			c.setStatus(e, e.ejected, false)
		}
	}
	c.updatePhase()
	return reset
}

func (c *Core[T]) clearEjection(e *Endpoint[T]) {
	c.setStatus(e, false, false)
	e.multiplier = 0
}

// Next returns the time at which the policy must call Sweep. runs is false if no Sweep is needed.
func (c *Core[T]) Next() (next time.Time, ok bool) {
	if c.started.IsZero() {
		return time.Time{}, false
	}
	return c.started.Add(c.config.Interval), true
}

// Sweep ejects endpoints and ends ejections, as A50's timer does.
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
	mayExpire := c.phase == Usable || c.checkRecovery(now)
	for _, e := range c.endpoints {
		switch {
		case !e.ejected && !e.unproven && e.multiplier > 0:
			e.multiplier--
		case e.ejected && mayExpire && now.After(c.EjectedUntil(e)):
			c.setStatus(e, false, c.config.ReportEmptied)
		}
	}
	c.updatePhase()
}

func (c *Core[T]) addToCounts(e *Endpoint[T], delta int) {
	if !e.present {
		return
	}
	if e.ejected {
		c.counts.ejected += delta
	}
	if e.unproven {
		c.counts.unproven += delta
	}
	switch e.connection {
	case Connecting:
		c.counts.connecting += delta
		if e.ejected && e.connectionLost {
			c.counts.reconnecting += delta
		}
	case Connected:
		c.counts.connected += delta
		if e.ejected && e.connectionLost {
			c.counts.reconnected += delta
		}
	case Broken, Absent:
		return
	}
	if !e.ejected && !e.unproven {
		c.counts.sound += delta
	}
}

// Take returns the changes since the last Take.
func (c *Core[T]) Take() Outcome[T] {
	outcome := c.outcome
	c.outcome = Outcome[T]{}
	return outcome
}
