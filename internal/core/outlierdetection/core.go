// Package outlierdetection decides which endpoints are ejected because their calls fail (gRFC A50,
// and A61 for endpoints with several addresses). An ejected endpoint receives no calls for a while.
// The package is a state machine without goroutines, locks, a clock or gRPC types. Its inputs are
// counts of calls, the time and random numbers; its outputs are ejections and their ends:
//
//	Sweep at 10s, a has 100 successes, b has 10 and 90 failures  ->  eject b
//	Sweep at 50s, the 30s of b are over                          ->  uneject b
//
// In addition to A50, it ejects endpoints immediately after consecutive failures, and it has three
// rules for priorities whose calls other priorities can take (see Config.BelowOverflow).
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

	// BelowOverflow means that a priority policy with overflow is above. It sends calls to other
	// priorities if this one cannot answer them, so this one need not fail them itself. Then:
	//
	//   - The child policy sees ejections only while at least one endpoint is sound: it is not ejected,
	//     and it is connected, or connecting without a failed attempt.
	//   - An answer to a call that began after a hidden ejection ends it.
	//   - An endpoint whose ejection ended by time is Returned. Until it answers, its next failure
	//     ejects it. The ejection time multiplier falls only in an interval with a success.
	BelowOverflow bool
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

	present        bool
	connection     Connection
	state          State
	algorithm      Algorithm
	visiblyEjected bool          // the child policy sees the endpoint as ejected
	multiplier     int64         // A50's ejection time multiplier
	ejectedAt      time.Duration // since Core.epoch
}

// State is whether an endpoint is ejected, or has just been.
type State uint8

// The states of an endpoint. Returned is used only with Config.BelowOverflow.
const (
	InService State = iota
	Ejected         // A50's ejection timestamp is set
	Returned        // the ejection ended because its time was over, and no call has been answered since it began
)

// State returns the endpoint's state.
func (e *Endpoint[T]) State() State { return e.state }

// Ejected reports whether the endpoint is ejected. The ejection may be hidden from the child policy
// (see VisiblyEjected).
func (e *Endpoint[T]) Ejected() bool { return e.state == Ejected }

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
	States    []*Endpoint[T] // endpoints whose State has changed
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
	ejected        int       // number of ejected endpoints
	sound          int       // number of sound endpoints (see Config.BelowOverflow)
	showsEjections bool      // the child policy sees ejections
	started        time.Time // A50's timer start timestamp, or zero
	epoch          time.Time // of the first update
	outcome        Outcome[T]
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
	if c.epoch.IsZero() {
		c.epoch = now
	}
	before := c.endpoints
	c.config, c.endpoints, c.ejected, c.sound = config, endpoints, 0, 0
	same := 0 // usually nearly all endpoints are where they were
	for same < min(len(before), len(endpoints)) && before[same] == endpoints[same] {
		same++
	}
	for _, e := range before[same:] {
		e.present = false
	}
	for _, e := range endpoints[same:] {
		e.present = true
	}
	for _, e := range before[same:] {
		if !e.present {
			c.clearEjection(e)
		}
	}
	switch {
	case config.NoOp():
		c.started = time.Time{}
	case c.started.IsZero():
		c.started, reset = now, true
	}
	for _, e := range endpoints {
		c.addToCounts(e, 1)
		if config.NoOp() {
			c.clearEjection(e)
		} else if e.state == Returned && !config.BelowOverflow {
			c.setState(e, InService)
		}
	}
	c.updateVisible(endpoints...)
	return reset
}

func (c *Core[T]) clearEjection(e *Endpoint[T]) {
	c.setState(e, InService)
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
	unejected := InService
	if c.config.BelowOverflow {
		unejected = Returned
	}
	for _, e := range c.endpoints {
		switch {
		case e.state == Ejected && now.After(c.EjectedUntil(e)):
			c.setState(e, unejected)
		case e.state != Ejected && e.multiplier > 0 && (e.Successes > 0 || !c.config.BelowOverflow):
			e.multiplier--
		}
	}
	c.updateVisible(c.endpoints...)
}

// Take returns the changes since the last Take.
func (c *Core[T]) Take() Outcome[T] {
	outcome := c.outcome
	c.outcome = Outcome[T]{}
	return outcome
}
