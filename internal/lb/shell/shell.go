// Package shell implements the common part of all policies with children. It implements
// balancer.Balancer, runs one event at a time, owns the children and timers, publishes the policy's
// state and takes snapshots. A policy adds its configuration, a package of internal/core that makes
// the decisions, and the code that executes them.
//
// Guarantees:
//
//   - An update consists of two events, Begin and End. Before End runs, all reports of children
//     during Begin have been handled. Nothing is published between Begin and End.
//   - After a batch of events, a state that has changed is published once.
//   - A configuration of the wrong type is rejected. Without an earlier configuration, calls fail
//     with the reason.
//   - A child that refuses an update counts as failed with its error, unless it is READY or IDLE.
//     UpdateClientConnState returns the errors of children only if the policy itself has failed: a
//     parent takes an error for the failure of the whole policy.
//   - UpdateClientConnState and Close return when they have taken effect. ResolverError and
//     ExitIdle never block, since a parent may call them from inside its UpdateState.
//   - After Close, the policy publishes no state and calls no child.
package shell

import (
	"fmt"
	"time"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/grpclog"
	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/lb/hierarchy"
	"github.com/understudy-lb/understudy/internal/lb/live"
	"github.com/understudy-lb/understudy/internal/lb/serial"
	"github.com/understudy-lb/understudy/internal/lb/stateattr"
)

var Logger = grpclog.Component("understudy")

// Policy is what a policy with a Shell implements. We call its methods in events, and not after
// Close. C is the policy's configuration, a type of package lbconfig.
type Policy[C any] interface {
	// Begin applies a configuration and a resolver state, and updates the children.
	Begin(config *C, state resolver.State)
	// End ends the update, after all reports of children during Begin have been handled.
	End()
	PolicyMethods
}

// PolicyMethods are the methods of Policy that do not depend on C.
type PolicyMethods interface {
	State() balancer.State
	Children(yield func(name string, child Below) bool)
	// ExitIdle connects the children that should be connected.
	ExitIdle()
}

// Scheduled is for policies that decide themselves when their state is published. Others call
// Shell.Publish.
type Scheduled interface {
	// Due is true if State must be published at when. The zero time means immediately.
	Due() (when time.Time, due bool)
}

// Settler is for policies that have work to do after each batch of events.
type Settler interface {
	// Settled is called after each batch of events, and a last time after Close, with closed true.
	Settled(closed bool)
}

// Below is a child of a policy: a Child or an Instance.
type Below interface {
	ResolverError(err error)
	ExitIdle()
	ResetBackoff(atLeast time.Duration)
	Close()
	childSnapshot() ChildSnapshot
}

// Shell is the common part of a policy. The policy uses its fields and methods in events.
type Shell struct {
	// ClientConn is the parent's ClientConn, which creates subchannels.
	ClientConn balancer.ClientConn
	Options    balancer.BuildOptions

	name      string
	methods   PolicyMethods
	scheduled Scheduled // nil for a policy that calls Publish
	settler   Settler

	serial                    serial.Serializer
	resolverErrors, exitIdles serial.Slot

	configured    bool
	updating      bool
	closed        bool
	settled       bool
	mustPublish   bool
	hadUnassigned bool // some endpoints of the last update belonged to no child
	refusals      refusals
	removed       []*Instance // removed children; the next flush closes them, because calls no longer use them then

	published  balancer.State
	stateSince time.Time
	timer      serial.Timer
	timerEnd   time.Time

	channel        *stateattr.Channel
	records        serial.Records
	parentInstance *Instance     // the Instance that contains this policy, or nil if the parent has no Shell
	isLastAction   bool          // no action follows the next publication in this batch of events
	live           *live.Channel // nil unless the debug page is enabled
	unwatch        func()        // stops watching this policy; set only for the topmost policy of a channel
	watch
}

type lb[C any] struct {
	Shell
	policy        Policy[C]
	defaultConfig func() *C
}

func (b *lb[C]) UpdateClientConnState(ccs balancer.ClientConnState) error {
	config, ok := any(ccs.BalancerConfig).(*C)
	if !ok && ccs.BalancerConfig == nil && b.defaultConfig != nil {
		config, ok = b.defaultConfig(), true
	}
	if !ok {
		return b.refuse(fmt.Errorf("%s: configuration of type %T given, want one that ParseConfig returned: %w", b.name, ccs.BalancerConfig, balancer.ErrBadResolverState))
	}
	b.serial.Do(func() {
		if b.closed {
			return
		}
		b.attach(stateattr.ChannelOf(ccs.ResolverState))
		b.mustPublish = b.mustPublish || !b.configured // the first state is always published
		b.configured, b.updating = true, true
		b.channel = stateattr.ChannelOf(ccs.ResolverState)
		b.policy.Begin(config, hierarchy.Unseal(ccs.ResolverState))
	})
	// Other goroutines may have queued reports in the meantime. With a second event, we handle
	// these before End.
	var err error
	b.serial.Do(func() {
		if !b.closed {
			b.policy.End()
			err = b.end()
		}
	})
	return err
}

// Do runs f in an event and returns when f has returned. It must not be called in an event.
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

// A policy that has never had a valid configuration would let calls wait forever, so they fail.
func (s *Shell) refuse(err error) error {
	s.serial.Do(func() {
		if !s.closed && !s.configured {
			s.publish(Failed(err))
		}
	})
	return err
}

// ResolverError passes err to all children. If the policy has no children, calls fail with err.
func (s *Shell) ResolverError(err error) {
	s.resolverErrors.Enqueue(&s.serial, func() {
		if s.closed {
			return
		}
		childless := true
		for _, c := range s.methods.Children {
			childless = false
			c.ResolverError(err)
		}
		if childless {
			s.publish(Failed(fmt.Errorf("%s: the resolver failed: %w", s.name, err)))
		}
	})
}

// UpdateSubConnState does nothing: subchannels report to the children.
func (s *Shell) UpdateSubConnState(balancer.SubConn, balancer.SubConnState) {}

func (s *Shell) ExitIdle() {
	s.exitIdles.Enqueue(&s.serial, func() {
		if !s.closed {
			s.methods.ExitIdle()
		}
	})
}

// BackoffResetter is for policies that can end the backoff of their subchannels.
type BackoffResetter interface {
	// ResetBackoff ends the backoffs that have lasted for so long. It must not block, like ExitIdle.
	ResetBackoff(atLeast time.Duration)
}

// ResetBackoff makes subchannels below the policy connect now if their backoff has lasted for so
// long. It does not block. We cannot use grpc.ClientConn.ResetConnectBackoff, which has a data race
// with the creation of subchannels (grpc-go 1.85).
func (s *Shell) ResetBackoff(atLeast time.Duration) {
	s.Event(func() {
		for _, c := range s.methods.Children {
			c.ResetBackoff(atLeast)
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
		for _, c := range s.methods.Children {
			c.Close()
		}
		s.closeRemoved()
	})
}
