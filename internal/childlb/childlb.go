// Package childlb owns one child policy on behalf of a policy with children: it
// builds it, remembers what it last reported, changes its type gracefully, and
// keeps what it says after it was closed from its parent.
package childlb

import (
	"errors"
	"fmt"
	"sync"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/balancer/base"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/lbconfig"
	"github.com/understudy-lb/understudy/internal/serial"
)

// Parent is what a Child needs of the policy that owns it.
type Parent struct {
	// ClientConn is the parent's own; the child's subchannels are made there.
	ClientConn balancer.ClientConn
	// Options are those the parent was built with.
	Options balancer.BuildOptions
	// Serializer runs the parent's events. Every method of a Child is called, and
	// Report calls, from inside an event of it.
	Serializer *serial.Serializer
}

// Child is one child policy. While its policy is being exchanged for one of
// another type there are two: the current one, whose state and picker are used,
// and the pending one, which takes over once it reports a state other than
// CONNECTING, or once the current one is not READY.
//
// All methods are called from events of the parent's serializer, and not after
// Close.
type Child struct {
	parent     Parent
	report     func(balancer.State)
	resolveNow func()
	current    *instance
	pending    *instance

	mu   sync.Mutex
	said []said // what the policies reported and no event has taken in yet, the oldest first

	takeOne func()
	early   int // how many reports were taken in before the events queued for them
}

type said struct {
	by    *instance
	state balancer.State
}

// New returns a child without a policy; the first Update builds it. The child
// calls report, from an event of the serializer, with each state that it is to
// be taken to have; and resolveNow, on the policy's own stack, when the policy
// asks for re-resolution. It calls neither after Close has returned, but for a
// resolveNow already under way.
func New(parent Parent, report func(balancer.State), resolveNow func()) *Child {
	c := &Child{parent: parent, report: report, resolveNow: resolveNow}
	c.takeOne = func() {
		if c.early > 0 {
			c.early--
			return
		}
		c.take(1)
	}
	return c
}

// Connecting is the state of a child that has not reported yet.
func Connecting() balancer.State {
	return balancer.State{
		ConnectivityState: connectivity.Connecting,
		Picker:            base.NewErrPicker(balancer.ErrNoSubConnAvailable),
	}
}

// Failed is the state of a child that cannot serve because of err: calls fail with
// UNAVAILABLE and err's text, and those that wait for ready wait. The picker's error
// wraps nothing, because one that wraps a status error, say a resolver's, would end
// the calls that wait.
func Failed(err error) balancer.State {
	return balancer.State{
		ConnectivityState: connectivity.TransientFailure,
		Picker:            Failing(errors.New(err.Error())),
	}
}

// RefusalCounts returns whether a child that refused an update with err counts as failed
// with that: not if it is READY or IDLE, which then stays in use, nor if it has said
// itself what is wrong, which balancer.ErrBadResolverState does not.
func RefusalCounts(reported connectivity.State, err error) bool {
	switch reported {
	case connectivity.Ready, connectivity.Idle:
		return false
	case connectivity.TransientFailure:
		return !errors.Is(err, balancer.ErrBadResolverState)
	}
	return true
}

// WithEndpoints returns the state with these endpoints and no others, and with their
// addresses, because policies made with base.NewBalancerBuilder look at nothing else.
func WithEndpoints(state resolver.State, endpoints []resolver.Endpoint) resolver.State {
	state.Endpoints, state.Addresses = endpoints, nil
	for _, endpoint := range endpoints {
		state.Addresses = append(state.Addresses, endpoint.Addresses...)
	}
	return state
}

// Update gives the child its policy, configuration and endpoints, and returns the
// policy's error, made Plain. A policy of another type than the last is built anew, and
// takes over gracefully. What the child reported before, and is still queued, is handed
// on first, and what it reports from inside the update before Update returns: it is part
// of the state that the parent finds, and the error comes after it.
func (c *Child) Update(policy lbconfig.Policy, state resolver.State) error {
	if policy.Builder == nil {
		return errors.New("no child policy configured")
	}
	c.takeReports()
	latest := c.latest()
	if latest == nil || latest.name != policy.Name() {
		latest = c.switchTo(policy)
		if latest == nil {
			return fmt.Errorf("policy %s built no balancer", policy.Name())
		}
	}
	err := Plain(latest.balancer.UpdateClientConnState(balancer.ClientConnState{
		ResolverState:  state,
		BalancerConfig: policy.Config,
	}))
	c.takeReports()
	if err != nil && latest == c.pending {
		// The parent takes this error for the current policy's as long as that one
		// serves. Should the pending one, which may never report, take over, it counts
		// as failed.
		latest.state = Failed(err)
	}
	return err
}

func (c *Child) latest() *instance {
	if c.pending != nil {
		return c.pending
	}
	return c.current
}

func (c *Child) switchTo(policy lbconfig.Policy) *instance {
	c.pending.close()
	c.pending = nil
	i := newInstance(c, policy.Builder)
	if i == nil {
		return nil
	}
	if c.current == nil {
		c.current = i
	} else {
		c.pending = i
	}
	return i
}

// say queues a report of a policy. It is called on the policy's own stack.
func (c *Child) say(by *instance, state balancer.State) {
	c.mu.Lock()
	c.said = append(c.said, said{by, state})
	c.mu.Unlock()
	c.parent.Serializer.Enqueue(c.takeOne)
}

// take takes in the oldest n reports that are queued, where there are as many.
func (c *Child) take(n int) {
	c.mu.Lock()
	n = min(n, len(c.said))
	oldest := c.said[:n:n]
	if c.said = c.said[n:]; len(c.said) == 0 {
		c.said = nil
	}
	c.mu.Unlock()
	for _, s := range oldest {
		if !s.by.isClosed() {
			c.reported(s.by, s.state)
		}
	}
}

// takeReports takes in all that is queued now, ahead of the events that are.
func (c *Child) takeReports() {
	c.mu.Lock()
	n := len(c.said)
	c.mu.Unlock()
	c.early += n
	c.take(n)
}

// reported handles a state that instance i reported, in an event.
func (c *Child) reported(i *instance, state balancer.State) {
	i.state = state
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
	c.report(c.current.state)
	old.close()
}

// Exists reports whether the child has a policy: whether it was ever updated.
func (c *Child) Exists() bool { return c.current != nil }

// ResolverError passes an error of the resolver on to the policy.
func (c *Child) ResolverError(err error) {
	if latest := c.latest(); latest != nil {
		latest.balancer.ResolverError(err)
	}
}

// ExitIdle asks the policy to connect.
func (c *Child) ExitIdle() {
	if latest := c.latest(); latest != nil {
		latest.balancer.ExitIdle()
	}
}

// Close closes the policy. Close may be called again.
func (c *Child) Close() {
	c.current.close()
	c.pending.close()
	c.current, c.pending = nil, nil
}
