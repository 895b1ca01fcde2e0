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

// Child is a child of a policy. If an update comes with another type of policy, the child's policy
// is replaced. Only call the methods of Child in events, and not after Close.
//
// While it's being replaced, the child has two policies. The pending one takes over once it reports
// a state other than CONNECTING, or once the current one is no longer READY.
type Child struct {
	shell    *Shell
	name     string
	handlers Handlers

	current, pending *Instance
	latestName       string
	firstInstance    Instance

	state       balancer.State
	since       int64 // Unix nanoseconds; 0 until the connectivity state has changed
	refused     bool
	lastError   error
	lastFailure *failureRecord
	timers      [timersPerChild]serial.Timer
	timerEnds   [timersPerChild]time.Time
}

const timersPerChild = 7

type Handlers struct {
	Reported func(c *Child, state balancer.State)
	// Refused is called when the child has refused its update. Use failed as its state until it
	// reports again or accepts an update. If Refused is nil, we call Reported with that state
	// instead, and later, when the child accepts an update, with its last reported one.
	Refused func(c *Child, failed balancer.State)
	// Title returns what to call the child in errors and logs. If Title is nil or returns "",
	// we use the child's name.
	Title func(name string) string
	// ResolveNow is called when the child requests a re-resolution, on the child's stack. If it's
	// nil, the request goes to the ClientConn.
	ResolveNow func(name string)
}

func (s *Shell) NewChild(name string, handlers Handlers) *Child {
	return &Child{shell: s, name: name, handlers: handlers, state: Connecting()}
}

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

func (c *Child) Exists() bool { return c.current != nil }

func (c *Child) State() balancer.State { return c.state }

// Refused returns true while the child counts as failed because it refused its last update. That
// ends with its next report.
func (c *Child) Refused() bool { return c.refused }

// LastError returns the child's latest error, even if it has recovered since. It's nil if the child
// has never failed.
func (c *Child) LastError() error { return c.lastError }

// Update passes policy, configuration and endpoints to the child. If it's another type of policy,
// it replaces the current one gracefully. We handle any reports that come in during the update
// first, and then the error that the update returns.
func (c *Child) Update(policy lbconfig.Policy, state resolver.State) {
	wasRefused := c.refused
	c.refused = false
	err := c.update(policy, state)
	if err == nil {
		if wasRefused {
			c.recordError(c.state) // the child isn't refusing anymore, so its last report counts again
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
	if latest != c.pending {
		return err
	}
	// If the current policy isn't READY or IDLE, this error makes the child count as failed. We
	// also need it as the state of the pending policy, which may never report one.
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

// ErrUnknownFailure is used if a child fails and its picker doesn't tell us the error (see
// FailureOf).
var ErrUnknownFailure = errors.New("TRANSIENT_FAILURE with an unknown error: its picker does not report it")

func (c *Child) ResolveNow() {
	if c.handlers.ResolveNow != nil {
		c.handlers.ResolveNow(c.name)
		return
	}
	c.shell.ClientConn.ResolveNow(resolver.ResolveNowOptions{})
}

// StartTimer starts or restarts a timer of the child. Timers are numbered from 0 to
// timersPerChild-1. When it fires, fired is called in an event.
func (c *Child) StartTimer(timer int, after time.Duration, fired func()) {
	c.timerEnds[timer] = time.Now().Add(after)
	c.timers[timer].Start(&c.shell.serial, after, fired)
}

func (c *Child) TimerEnds(timer int) (at time.Time, isRunning bool) {
	return c.timerEnds[timer], c.timers[timer].Runs()
}

func (c *Child) StopTimer(timer int) { c.timers[timer].Stop() }

// ResolverError passes an error of the resolver to the pending policy, or to the current one if
// there's none pending.
func (c *Child) ResolverError(err error) {
	if latest := c.latest(); latest != nil {
		latest.ResolverError(err)
	}
}

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

func (c *Child) Close() {
	for i := range c.timers {
		c.timers[i].Stop()
	}
	c.current.Close()
	c.pending.Close()
	c.current, c.pending = nil, nil
}
