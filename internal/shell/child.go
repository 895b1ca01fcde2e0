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

	"github.com/understudy-lb/understudy/internal/lbconfig"
	"github.com/understudy-lb/understudy/internal/serial"
)

// Child is a child whose policy may change its type from update to update. During a
// change it has two policies. The current one's state and picker are used. The pending
// one takes over once it reports a state other than CONNECTING, or once the current one
// is not READY.
//
// It is used in events, and not after Close.
type Child struct {
	shell    *Shell
	name     string
	handlers Handlers

	current, pending *Instance
	latestName       string // the name of the policy updated last
	first            Instance

	state   balancer.State // what the current policy reported last
	since   int64          // when that changed, in Unix nanoseconds; 0 where it was not noted
	refused bool           // it returned an error from its last update, which counts
	failed  error          // its last known error, nil for none
	past    *past          // its last failure, nil where it was not noted
	timers  [timersEach]serial.Timer
	ends    [timersEach]time.Time // of those that run
}

// timersEach is the number of timers of a child.
const timersEach = 6

// Handlers are a policy's answers to what a child does.
type Handlers struct {
	// Reported handles, in an event, the state that the child counts as from now on.
	Reported func(c *Child, state balancer.State)
	// Refused handles a child that refused its update. The child counts as failed until
	// it reports or is updated again. Where Refused is nil, Reported is called instead,
	// and again when an update succeeds.
	Refused func(c *Child, failed balancer.State)
	// Title returns what people call the child, "" or nil to go by its name.
	Title func(name string) string
	// ResolveNow handles a request for re-resolution, on the child's own stack. Where
	// it is nil, the request goes to the ClientConn.
	ResolveNow func(name string)
}

// NewChild returns a child without a policy; the first Update builds it.
func (s *Shell) NewChild(name string, handlers Handlers) *Child {
	return &Child{shell: s, name: name, handlers: handlers, state: Connecting()}
}

// ByName yields children by name.
func ByName[C Below](children map[string]C, yield func(string, Below) bool) {
	for _, name := range slices.Sorted(maps.Keys(children)) {
		if !yield(name, children[name]) {
			return
		}
	}
}

// Name returns the child's name.
// Name returns the child's name.
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

// Exists reports whether the child has a policy: whether it was ever updated.
func (c *Child) Exists() bool { return c.current != nil }

// State returns what the child reported last, CONNECTING before that.
func (c *Child) State() balancer.State { return c.state }

// Refused returns whether the child counts as failed because it refused its last
// update, and has reported nothing since.
func (c *Child) Refused() bool { return c.refused }

// LastError returns the child's last known error, nil for none.
func (c *Child) LastError() error { return c.failed }

// Update gives the child its policy, configuration and endpoints. If the type of the
// policy changes, a new policy is built and takes over gracefully. Before Update
// returns, it handles what the child reports from inside the update, and then the error
// of the update.
func (c *Child) Update(policy lbconfig.Policy, state resolver.State) {
	before := c.refused
	c.refused = false
	err := c.update(policy, state)
	if err == nil {
		if before {
			c.noteFailure(c.state) // the refusal is over: it counts again as what it reported
		}
		if before && c.handlers.Refused == nil {
			c.handlers.Reported(c, c.state)
		}
		return
	}
	refusal, counts := c.shell.Refused(c.title(), c.state.ConnectivityState, err)
	if refusal != nil {
		c.failed = refusal
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
	err := latest.update(policy.Config, state)
	if latest != c.pending { // or not any more
		return err
	}
	// The parent takes an error for the current policy's as long as that one serves. The
	// pending one, which is CONNECTING, may never report; if it takes over, it counts as
	// failed, unless it has taken another update since.
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
	c.pending, c.latestName = nil, "" // which is not the current one's type
	i := &c.first
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

// Reported handles a state that a policy of the child reported, in an event.
func (c *Child) Reported(i *Instance, state balancer.State) {
	switch i {
	case c.current:
		if c.pending != nil && state.ConnectivityState != connectivity.Ready {
			c.swap()
			return
		}
		c.report(state)
	case c.pending:
		if state.ConnectivityState != connectivity.Connecting || c.current.state.ConnectivityState != connectivity.Ready {
			c.swap()
		}
	}
}

func (c *Child) swap() {
	old := c.current
	c.current, c.pending = c.pending, nil
	old.Remove()
	c.report(c.current.state)
}

func (c *Child) report(state balancer.State) {
	noteSince(&c.since, c.state.ConnectivityState, state.ConnectivityState)
	notePast(&c.past, state)
	c.state, c.refused = state, false
	c.noteFailure(state)
	c.handlers.Reported(c, state)
}

// noteFailure notes the error of a state that is TRANSIENT_FAILURE.
func (c *Child) noteFailure(state balancer.State) {
	if state.ConnectivityState != connectivity.TransientFailure {
		return
	}
	if c.failed = FailureOf(state.Picker); c.failed == nil {
		c.failed = ErrUntold
	}
}

// ErrUntold stands for the error of a child that is not of this module.
var ErrUntold = errors.New("TRANSIENT_FAILURE with an unknown error: its picker does not report it")

// ResolveNow is called by a policy of the child, on its own stack.
func (c *Child) ResolveNow() {
	if c.handlers.ResolveNow != nil {
		c.handlers.ResolveNow(c.name)
		return
	}
	c.shell.ClientConn.ResolveNow(resolver.ResolveNowOptions{})
}

// StartTimer starts a timer of the child, less than timersEach, and ends an earlier run of it. When
// the time is over, fired runs in an event, unless the timer was stopped or the child
// closed.
func (c *Child) StartTimer(timer int, after time.Duration, fired func()) {
	c.ends[timer] = time.Now().Add(after)
	c.timers[timer].Start(&c.shell.serial, after, fired)
}

// TimerEnds returns when a timer of the child ends, and whether it runs.
func (c *Child) TimerEnds(timer int) (at time.Time, runs bool) {
	return c.ends[timer], c.timers[timer].Runs()
}

// StopTimer stops a timer of the child.
// StopTimer stops a timer of the child.
func (c *Child) StopTimer(timer int) { c.timers[timer].Stop() }

// ResolverError passes an error of the resolver on to the policy.
func (c *Child) ResolverError(err error) {
	if latest := c.latest(); latest != nil {
		latest.ResolverError(err)
	}
}

// ExitIdle asks the policy to connect.
func (c *Child) ExitIdle() {
	if latest := c.latest(); latest != nil {
		latest.ExitIdle()
	}
}

// ResetBackoff is described at BackoffResetter.
func (c *Child) ResetBackoff() {
	if latest := c.latest(); latest != nil {
		latest.ResetBackoff()
	}
}

// Close closes the policy and stops the timers.
func (c *Child) Close() {
	for i := range c.timers {
		c.timers[i].Stop()
	}
	c.current.Close()
	c.pending.Close()
	c.current, c.pending = nil, nil
}
