// Package shell implements what all policies with children have in common. It implements
// balancer.Balancer, runs one event at a time, owns the children and timers, publishes the policy's
// state and takes snapshots. A policy adds a configuration, a core that makes the decisions, and
// the code that applies them.
//
// The shell guarantees:
//
//   - An update is two events, Begin and End. All reports of children during Begin have been
//     handled before End runs, and nothing is published between the two.
//   - After a batch of events, a state that has changed is published once.
//   - A configuration of the wrong type is rejected. Without an earlier configuration, calls fail
//     with the reason.
//   - A child that refuses an update counts as failed with its error, unless it is READY or IDLE.
//     UpdateClientConnState returns the errors of children only if the policy itself has failed,
//     because a parent treats an error as the failure of the whole policy.
//   - UpdateClientConnState and Close return after they have been applied. ResolverError and
//     ExitIdle never block, because a parent may call them from inside its UpdateState.
//   - After Close, the policy publishes no state and calls no child.
package shell

import (
	"fmt"
	"time"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/grpclog"
	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/hierarchy"
	"github.com/understudy-lb/understudy/internal/live"
	"github.com/understudy-lb/understudy/internal/serial"
	"github.com/understudy-lb/understudy/internal/stateattr"
)

// Logger is the logger of all policies.
var Logger = grpclog.Component("understudy")

// Policy is the interface of a policy. The shell calls it in events, and never after Close. C is
// the policy's configuration, a type of package lbconfig.
type Policy[C any] interface {
	// Begin applies a configuration and a resolver state by updating the children.
	Begin(config *C, state resolver.State)
	// End completes the update. It is called after all reports of children during Begin have been
	// handled.
	End()
	PolicyMethods
}

// PolicyMethods are the methods of a Policy that do not depend on its configuration.
type PolicyMethods interface {
	// State returns the state to publish.
	State() balancer.State
	// Children yields all existing children with their names.
	Children(yield func(name string, child Below) bool)
	// ExitIdle connects the children that the policy wants to be connected.
	ExitIdle()
}

// Scheduled is implemented by a policy that decides when to publish. All other policies call
// Shell.Publish.
type Scheduled interface {
	// Due reports whether State is to be published, and when. The zero time means immediately.
	Due() (at time.Time, due bool)
}

// Settler is implemented by a policy that has work to do after each batch of events, and once after
// Close.
type Settler interface {
	Settled(closed bool)
}

// Below is the shell's view of a child, which is a Child or an Instance.
type Below interface {
	ResolverError(err error)
	ExitIdle()
	ResetBackoff()
	Close()
	look() ChildSnapshot
}

// Shell is the shell of one policy. The policy uses its fields and methods in events.
type Shell struct {
	// ClientConn is the parent's ClientConn, which creates the subchannels.
	ClientConn balancer.ClientConn
	// Options are the policy's build options. The children are built with the same options.
	Options balancer.BuildOptions

	name      string
	parts     PolicyMethods
	scheduled Scheduled // nil if the policy does not implement Scheduled
	settler   Settler

	serial                    serial.Serializer
	resolverErrors, exitIdles serial.Slot

	configured bool // the policy has received a valid configuration
	updating   bool // from the start of Begin until the end of End
	closed     bool
	settled    bool // the policy has been notified of Close
	stale      bool // Publish was called
	strays     bool // the last update had endpoints that belong to no child
	refusals   refusals
	removed    []*Instance // closed after the next flush, when they receive no more calls

	published balancer.State
	since     time.Time // the last change of the published connectivity state
	timer     serial.Timer
	wakeAt    time.Time

	channel *stateattr.Channel
	above   *Instance     // this policy as a child of another policy of this module, or nil
	ending  bool          // the current batch ends with the next publication
	live    *live.Channel // nil if the debug pages are disabled
	unwatch func()        // set on the topmost policy of a channel on the debug pages
	watch
}

type lb[C any] struct {
	Shell
	policy   Policy[C]
	fallback func() *C
}

func (b *lb[C]) UpdateClientConnState(ccs balancer.ClientConnState) error {
	config, ok := any(ccs.BalancerConfig).(*C)
	if !ok && ccs.BalancerConfig == nil && b.fallback != nil {
		config, ok = b.fallback(), true
	}
	if !ok {
		return b.refuse(fmt.Errorf("%s: configuration of type %T given, want one that ParseConfig returned: %w", b.name, ccs.BalancerConfig, balancer.ErrBadResolverState))
	}
	b.serial.Do(func() {
		if b.closed {
			return
		}
		b.attach(stateattr.ChannelOf(ccs.ResolverState))
		b.stale = b.stale || !b.configured // the first configuration is always published
		b.configured, b.updating = true, true
		b.channel = stateattr.ChannelOf(ccs.ResolverState)
		b.policy.Begin(config, hierarchy.Unseal(ccs.ResolverState))
	})
	// Reports that arrive on other goroutines in the meantime are queued between the two events.
	var err error
	b.serial.Do(func() {
		if !b.closed {
			b.policy.End()
			err = b.end()
		}
	})
	return err
}

// Do runs f in an event and returns after f has returned. It must not be called from an event.
func (s *Shell) Do(f func()) { s.serial.Do(f) }

func (s *Shell) end() error {
	s.updating = false
	s.flush()
	err := s.refusals.join()
	s.refusals = nil
	if s.published.ConnectivityState != connectivity.TransientFailure {
		return nil
	}
	return err
}

// refuse makes calls fail with err if no valid configuration has been received. Without it, these
// calls would wait forever.
func (s *Shell) refuse(err error) error {
	s.serial.Do(func() {
		if !s.closed && !s.configured {
			s.publish(Failed(err))
		}
	})
	return err
}

// ResolverError passes the error to all children. If there are none, calls fail with it.
func (s *Shell) ResolverError(err error) {
	s.resolverErrors.Enqueue(&s.serial, func() {
		if s.closed {
			return
		}
		childless := true
		for _, c := range s.parts.Children {
			childless = false
			c.ResolverError(err)
		}
		if childless {
			s.publish(Failed(fmt.Errorf("%s: the resolver failed: %w", s.name, err)))
		}
	})
}

// UpdateSubConnState does nothing: subchannels report to the child that created them.
func (s *Shell) UpdateSubConnState(balancer.SubConn, balancer.SubConnState) {}

// ExitIdle connects the children that the policy wants to be connected.
func (s *Shell) ExitIdle() {
	s.exitIdles.Enqueue(&s.serial, func() {
		if !s.closed {
			s.parts.ExitIdle()
		}
	})
}

// BackoffResetter is implemented by policies that can end the backoff of their subchannels.
type BackoffResetter interface {
	// ResetBackoff must not block, like ExitIdle.
	ResetBackoff()
}

// ResetBackoff makes all subchannels below the policy retry now instead of after gRPC's backoff. It
// never blocks.
//
// It does not use grpc.ClientConn.ResetConnectBackoff, which has a data race with the creation of
// subchannels (grpc-go 1.85).
func (s *Shell) ResetBackoff() {
	s.Event(func() {
		for _, c := range s.parts.Children {
			c.ResetBackoff()
		}
	})
}

// Close closes all children. Nothing is published afterwards.
func (s *Shell) Close() {
	s.serial.Do(func() {
		if s.closed {
			return
		}
		s.detach()
		s.closed = true
		s.timer.Stop()
		for _, c := range s.parts.Children {
			c.Close()
		}
		s.closeRemoved()
	})
}
