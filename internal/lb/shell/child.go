package shell

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/config/lbconfig"
	"github.com/understudy-lb/understudy/internal/lb/serial"
)

// Child is a child of a policy. An update can replace its policy by a policy of another type. The
// methods of Child must be called in events, and not after Close.
//
// During a replacement, the child has two policies. The pending policy replaces the current policy
// when it reports a state other than CONNECTING, or when the current policy is no longer READY.
type Child struct {
	shell    *Shell
	name     string
	handlers Handlers

	current, pending *Instance
	latestName       string
	firstInstance    Instance

	state       balancer.State
	since       int64 // when the connectivity state last changed, in Unix nanoseconds, or 0
	refused     bool
	lastError   error
	lastFailure *failureRecord
	timers      [timersPerChild]serial.Timer
	timerEnds   [timersPerChild]time.Time
}

const timersPerChild = 7

// Handlers are a policy's callbacks for a child.
type Handlers struct {
	Reported func(c *Child, state balancer.State)
	// Refused is called when the child has refused its update. failed is the state to use for the
	// child until its next report, or until it accepts an update. If Refused is nil, Reported is
	// called with this state, and again with the last reported one when the child accepts an
	// update.
	Refused func(c *Child, failed balancer.State)
	// Title returns the child's title for errors and logs. If Title is nil or returns "", the child's
	// name is the title.
	Title func(name string) string
	// ResolveNow is called on the child's stack when the child requests a re-resolution. If ResolveNow
	// is nil, the ClientConn receives the request.
	ResolveNow func(name string)
}

// NewChild returns a child without a policy. The first Update builds the policy.
func (s *Shell) NewChild(name string, handlers Handlers) *Child {
	return &Child{shell: s, name: name, handlers: handlers, state: Connecting()}
}

// ByName yields the children in the order of their names.
func ByName[C Below](children map[string]C, yield func(string, Below) bool) {
	for _, name := range slices.Sorted(maps.Keys(children)) {
		if !yield(name, children[name]) {
			return
		}
	}
}

func (c *Child) Name() string { return c.name }

func (c *Child) title() string {
	if c.handlers.Title != nil {
		if title := c.handlers.Title(c.name); title != "" {
			return title
		}
	}
	if c.name == "" {
		return "the child"
	}
	return fmt.Sprintf("child %q", c.name)
}

// Exists reports whether the child has a policy, which the first Update builds.
func (c *Child) Exists() bool { return c.current != nil }

// State returns the last reported state, or CONNECTING before the first report.
func (c *Child) State() balancer.State { return c.state }

// Refused is true while the child counts as failed for having refused its last update. The child's
// next report ends this.
func (c *Child) Refused() bool { return c.refused }

// LastError returns the child's latest error, even if the child has recovered since, or nil if it
// has never failed.
func (c *Child) LastError() error { return c.lastError }

// Update passes the child its policy, configuration and endpoints. A policy of another type
// replaces the current one gracefully. We handle the reports that the child sends during the
// update, and then the error that it returns.
func (c *Child) Update(policy lbconfig.Policy, state resolver.State) {
	wasRefused := c.refused
	c.refused = false
	err := c.update(policy, state)
	if err == nil {
		if wasRefused {
			c.recordError(c.state) // the error in the last report counts again, because the child no longer refuses
		}
		if wasRefused && c.handlers.Refused == nil {
			c.handlers.Reported(c, c.state)
		}
		return
	}
	refusal, counts := c.shell.Refused(c.title(), c.state.ConnectivityState, err)
	if refusal != nil {
		c.lastError = refusal
	}
	if !counts {
		return
	}
	c.refused = true
	if c.handlers.Refused != nil {
		c.handlers.Refused(c, Failed(refusal))
	} else {
		c.handlers.Reported(c, Failed(refusal))
	}
}

func (c *Child) update(policy lbconfig.Policy, state resolver.State) error {
	if policy.Builder == nil {
		return errors.New("no child policy configured")
	}
	latest := c.latest()
	if latest == nil || c.latestName != policy.Name() {
		if latest = c.switchTo(policy); latest == nil {
			return fmt.Errorf("policy %s built no balancer", policy.Name())
		}
	}
	if _, isWatchable := latest.lb.(Watchable); !isWatchable && len(state.Addresses) == 0 {
		state = WithEndpoints(state, state.Endpoints)
	}
	err := latest.update(policy.Config, state)
	if latest != c.pending { // latest is the current policy, perhaps since this update
		return err
	}
	// If the current policy is not READY or IDLE, this error makes the child count as failed. The
	// error also becomes the state of the pending policy, which may never report one.
	switch {
	case err != nil:
		latest.state = Failed(err)
	case latest.state.ConnectivityState == connectivity.TransientFailure:
		latest.state = Connecting()
	}
	return err
}

func (c *Child) latest() *Instance {
	if c.pending != nil {
		return c.pending
	}
	return c.current
}

func (c *Child) switchTo(policy lbconfig.Policy) *Instance {
	c.pending.Close()
	c.pending, c.latestName = nil, ""
	i := &c.firstInstance
	if c.current != nil {
		i = new(Instance)
	}
	if !i.Build(c.shell, policy.Builder, c) {
		return nil
	}
	c.latestName = policy.Name()
	if c.current == nil {
		c.current = i
	} else {
		c.pending = i
	}
	return i
}

// Reported gets the reports of the current and of the pending policy.
func (c *Child) Reported(i *Instance, state balancer.State) {
	switch i {
	case c.current:
		if c.pending != nil && state.ConnectivityState != connectivity.Ready {
			c.switchToPending()
			return
		}
		c.report(state)
	case c.pending:
		if state.ConnectivityState != connectivity.Connecting || c.current.state.ConnectivityState != connectivity.Ready {
			c.switchToPending()
		}
	}
}

func (c *Child) switchToPending() {
	old := c.current
	c.current, c.pending = c.pending, nil
	old.Remove()
	c.report(c.current.state)
}

func (c *Child) report(state balancer.State) {
	recordChange(&c.since, c.state.ConnectivityState, state.ConnectivityState)
	recordFailure(&c.lastFailure, state)
	c.state, c.refused = state, false
	c.recordError(state)
	c.handlers.Reported(c, state)
}

func (c *Child) recordError(state balancer.State) {
	if state.ConnectivityState != connectivity.TransientFailure {
		return
	}
	if c.lastError = FailureOf(state.Picker); c.lastError == nil {
		c.lastError = ErrUnknownFailure
	}
}

// ErrUnknownFailure is the error of a failed child whose picker does not report an error (see
// FailureOf).
var ErrUnknownFailure = errors.New("TRANSIENT_FAILURE with an unknown error: its picker does not report it")

func (c *Child) ResolveNow() {
	if c.handlers.ResolveNow != nil {
		c.handlers.ResolveNow(c.name)
		return
	}
	c.shell.ClientConn.ResolveNow(resolver.ResolveNowOptions{})
}

// StartTimer starts or restarts a timer of the child. timer is the number of the timer, from 0 to
// timersPerChild-1. When the timer fires, fired is called in an event.
func (c *Child) StartTimer(timer int, after time.Duration, fired func()) {
	c.timerEnds[timer] = time.Now().Add(after)
	c.timers[timer].Start(&c.shell.serial, after, fired)
}

// TimerEnds returns the time at which a timer of the child fires, and whether the timer is running.
func (c *Child) TimerEnds(timer int) (at time.Time, isRunning bool) {
	return c.timerEnds[timer], c.timers[timer].Runs()
}

func (c *Child) StopTimer(timer int) { c.timers[timer].Stop() }

// ResolverError passes on an error of the resolver: to the pending policy if there is one,
// otherwise to the current one.
func (c *Child) ResolverError(err error) {
	if latest := c.latest(); latest != nil {
		latest.ResolverError(err)
	}
}

// ExitIdle makes the pending policy connect or, without one, the current policy.
func (c *Child) ExitIdle() {
	if latest := c.latest(); latest != nil {
		latest.ExitIdle()
	}
}

func (c *Child) ResetBackoff(atLeast time.Duration) {
	if latest := c.latest(); latest != nil {
		latest.ResetBackoff(atLeast)
	}
}

// Close closes the current and the pending policy, and stops the timers.
func (c *Child) Close() {
	for i := range c.timers {
		c.timers[i].Stop()
	}
	c.current.Close()
	c.pending.Close()
	c.current, c.pending = nil, nil
}
