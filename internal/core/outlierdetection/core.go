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
// algorithm that is nil does not run.
type Config struct {
	Interval           time.Duration
	BaseEjectionTime   time.Duration
	MaxEjectionTime    time.Duration
	MaxEjectionPercent uint32

	SuccessRateEjection         *SuccessRateEjection
	FailurePercentageEjection   *FailurePercentageEjection
	ConsecutiveFailuresEjection *ConsecutiveFailuresEjection

	// ReportEmptied makes the policy report to its parent that no usable endpoint is left, so that the
	// parent can use another priority (see Phase). After its ejection, an endpoint must then answer a
	// call before it counts as usable again (see Unproven).
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
	// Answers and Refusals count the calls that began in the current Epoch and have succeeded or
	// failed. The policy sets them only while Doubted is true.
	Answers, Refusals uint64
	// Unavailable means that the last failed call ended with UNAVAILABLE, which is the status when
	// a connection is lost. The policy sets it before it calls Failed or Sweep.
	Unavailable bool

	// There may be tens of thousands of endpoints. Small fields are side by side to save memory.
	present    bool
	connection Connection
	ejected    bool // A50's ejection timestamp is set
	by         Algorithm
	ended      bool // the ejection followed a call that ended with UNAVAILABLE
	lost       bool // ended is set, and the connection of that call is lost
	unproven   bool
	told       bool
	index      int32
	doubt      int32 // index in Core.doubted plus 1; 0 if the endpoint is not in it
	epoch      uint64
	multiplier int64 // A50's ejection time multiplier
	ejectedAt  time.Time
}

// Ejected reports whether the endpoint is ejected. The ejection may be hidden from the child policy
// (see Told).
func (e *Endpoint[T]) Ejected() bool { return e.ejected }

// Told reports whether the child policy sees the endpoint as ejected.
func (e *Endpoint[T]) Told() bool { return e.told }

// By returns the algorithm that ejected the endpoint.
func (e *Endpoint[T]) By() Algorithm { return e.by }

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

// Outcome lists the changes, in order.
type Outcome[T any] struct {
	Changes   []Change[T]
	Ejections []Ejection[T]
	// Doubts holds the endpoints for which Epoch, Doubted or Unproven may return another value than
	// before.
	Doubts []*Endpoint[T]
}

// Change is an ejection, or the end of one, that the child policy must see.
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
	config    Config
	random    func() uint32
	endpoints []*Endpoint[T]
	doubted   []*Endpoint[T] // all endpoints whose Doubted is true, in any order
	counts    counts
	tells     bool           // the child policy sees ejections (see Phase)
	touched   []*Endpoint[T] // endpoints whose Told may have to change
	started   time.Time      // A50's timer start timestamp, or zero
	phase     Phase
	outcome   Outcome[T]
	looked    int // number of endpoints that tell has visited; a test limits it
}

type counts struct {
	ejected    int
	unproven   int
	connecting int
	returning  int // reconnecting; they were ejected because calls ended with their connection
	connected  int
	lost       int // connected again; they were ejected because calls ended with their earlier connection
	sound      int
}

// New returns a core without endpoints. random must return integers in [0, 100).
func New[T any](random func() uint32) *Core[T] { return &Core[T]{random: random} }

// NoOp reports whether the current configuration never ejects an endpoint.
func (c *Core[T]) NoOp() bool { return c.config.NoOp() }

// Endpoints returns the endpoints in the order of the list. The caller must not modify the slice.
func (c *Core[T]) Endpoints() []*Endpoint[T] { return c.endpoints }

// Update sets the configuration and the endpoints (A50, "Outlier Detection Behavior"). An endpoint
// that stays in the list must have the same pointer as before. reset reports whether the policy
// must clear all its counters.
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

func (c *Core[T]) forget(e *Endpoint[T]) {
	c.set(e, false, false)
	e.multiplier = 0
}

// Next returns the time of the next Sweep. runs is false if there is none.
func (c *Core[T]) Next() (at time.Time, runs bool) {
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

// Take returns the changes since the last Take.
func (c *Core[T]) Take() Outcome[T] {
	outcome := c.outcome
	c.outcome = Outcome[T]{}
	return outcome
}
