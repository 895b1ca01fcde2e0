// Package outlierdetection decides which endpoints to eject because their calls fail (gRFC A50, and
// A61 for endpoints with several addresses). An ejected endpoint gets no calls for a while. This is
// a state machine without goroutines, locks, a clock or gRPC types. We feed it call counts, the
// time and random numbers, and it tells us when ejections begin and end:
//
//	Sweep at 10s, a has 100 successes, b has 10 and 90 failures  ->  eject b
//	Sweep at 50s, the 30s of b are over                          ->  uneject b
//
// It goes beyond A50 in two ways. Consecutive failures eject an endpoint right away, and there are
// three extra rules for priorities whose calls can go to other priorities instead (see
// Config.BelowOverflow).
package outlierdetection

import "time"

// Config is what we need of the configuration (A50, "LB Policy Config"). If an algorithm's field is
// nil, that algorithm doesn't run.
type Config struct {
	Interval           time.Duration
	BaseEjectionTime   time.Duration
	MaxEjectionTime    time.Duration
	MaxEjectionPercent uint32

	SuccessRateEjection         *SuccessRateEjection
	FailurePercentageEjection   *FailurePercentageEjection
	ConsecutiveFailuresEjection *ConsecutiveFailuresEjection

	// BelowOverflow means that there's a priority policy with overflow above us. If our endpoints
	// can't answer calls, it sends them to other priorities, so we don't have to fail them
	// ourselves. Then:
	//
	//   - The child policy sees ejections only while at least one endpoint is sound. That means that it's
	//     not ejected, and it's connected or hasn't failed to connect yet.
	//   - A hidden ejection ends when the endpoint answers a call that began after the ejection.
	//   - When an ejection has timed out, the endpoint is Returned. Until it answers a call, a single
	//     failure ejects it again. The ejection time multiplier only goes down in an interval with a success.
	BelowOverflow bool
}

type SuccessRateEjection struct {
	StdevFactor           uint32 // in thousandths
	EnforcementPercentage uint32
	MinimumHosts          uint32
	RequestVolume         uint32
}

type FailurePercentageEjection struct {
	Threshold             uint32
	EnforcementPercentage uint32
	MinimumHosts          uint32
	RequestVolume         uint32
}

type ConsecutiveFailuresEjection struct {
	Failures              uint32
	EnforcementPercentage uint32
}

func (c *Config) NoOp() bool {
	return c.SuccessRateEjection == nil && c.FailurePercentageEjection == nil && c.ConsecutiveFailuresEjection == nil
}

// Endpoint is an entry of A50's map. T is whatever the policy wants to attach to it.
type Endpoint[T any] struct {
	Attached T
	// Successes and Failures are A50's inactive bucket. The policy fills them in before each Sweep.
	Successes, Failures uint64

	present        bool
	connection     Connection
	state          State
	algorithm      Algorithm
	visiblyEjected bool // what the child policy sees; the ejection may be hidden
	multiplier     int64
	ejectedAt      time.Duration // as a duration since Core.epoch
}

type State uint8

const (
	InService State = iota
	Ejected
	Returned // the ejection has timed out, and no call has been answered since it began
)

func (e *Endpoint[T]) State() State { return e.state }

// Ejected is true even if we hide the ejection from the child policy (see VisiblyEjected).
func (e *Endpoint[T]) Ejected() bool { return e.state == Ejected }

func (e *Endpoint[T]) VisiblyEjected() bool { return e.visiblyEjected }

func (e *Endpoint[T]) EjectedBy() Algorithm { return e.algorithm }

func (e *Endpoint[T]) calls() uint64 { return e.Successes + e.Failures }

type Algorithm uint8

const (
	None Algorithm = iota
	SuccessRate
	FailurePercentage
	ConsecutiveFailures
)

func (a Algorithm) String() string {
	return [...]string{"none", "success_rate", "failure_percentage", "consecutive_failures"}[a]
}

type Outcome[T any] struct {
	Changes   []Change[T]
	Ejections []Ejection[T]
	States    []*Endpoint[T]
}

type Change[T any] struct {
	Endpoint *Endpoint[T]
	Ejected  bool
}

type Ejection[T any] struct {
	Endpoint *Endpoint[T]
	By       Algorithm
}

type Core[T any] struct {
	config         Config
	random         func() uint32
	endpoints      []*Endpoint[T]
	ejected        int
	sound          int  // number of sound endpoints (see Config.BelowOverflow)
	showsEjections bool // the child policy sees ejections
	started        time.Time
	epoch          time.Time
	outcome        Outcome[T]
}

// New returns a core without endpoints. random must return integers in [0, 100).
func New[T any](random func() uint32) *Core[T] { return &Core[T]{random: random} }

func (c *Core[T]) NoOp() bool { return c.config.NoOp() }

// Endpoints returns the endpoints in the order of the list. Don't modify it.
func (c *Core[T]) Endpoints() []*Endpoint[T] { return c.endpoints }

// Update sets the configuration and the endpoints (A50, "Outlier Detection Behavior"). Endpoints
// that were in the list before must keep their pointers. If reset is true, the policy has to clear
// all of its counters.
func (c *Core[T]) Update(config Config, endpoints []*Endpoint[T], now time.Time) (reset bool) {
	if c.epoch.IsZero() {
		c.epoch = now
	}
	before := c.endpoints
	c.config, c.endpoints, c.ejected, c.sound = config, endpoints, 0, 0
	same := 0
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

// Next returns when to call Sweep, or false if there's no need to.
func (c *Core[T]) Next() (next time.Time, ok bool) {
	if c.started.IsZero() {
		return time.Time{}, false
	}
	return c.started.Add(c.config.Interval), true
}

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

func (c *Core[T]) Take() Outcome[T] {
	outcome := c.outcome
	c.outcome = Outcome[T]{}
	return outcome
}
