// Package shell is what all policies with children have in common. It implements balancer.Balancer,
// runs one event at a time, owns children and timers, publishes the policy's state and takes
// snapshots. What's left for a policy is its configuration, a package of internal/core that makes
// the decisions, and the code that carries them out.
//
// Guarantees:
//
//   - An update is two events, Begin and End. Anything that children report during Begin is handled before
//     End runs, and nothing is published in between.
//   - If the state has changed, it's published once, after the batch of events.
//   - A configuration of the wrong type is rejected. If there hasn't been a valid one before, calls fail with
//     the reason.
//   - A child that refuses an update counts as failed with that error, unless it's READY or IDLE.
//     UpdateClientConnState only returns errors of children if the policy itself has failed, because a parent
//     would think that the whole policy has.
//   - UpdateClientConnState and Close don't return until they've taken effect. ResolverError and ExitIdle
//     never block, since a parent may call them from within its UpdateState.
//   - After Close, the policy doesn't publish anything and doesn't call any child.
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

// Policy is what a policy with a Shell implements. We only call it in events, and not after Close.
// C is the policy's configuration, a type of package lbconfig.
type Policy[C any] interface {
	Begin(config *C, state resolver.State)
	// End ends the update. By then, everything that children reported during Begin has been
	// handled.
	End()
	PolicyMethods
}

type PolicyMethods interface {
	State() balancer.State
	Children(yield func(name string, child Below) bool)
	ExitIdle()
}

// Scheduled is for policies that decide for themselves when to publish. The rest call
// Shell.Publish.
type Scheduled interface {
	// Due says whether State must be published, and when. The zero time means right away.
	Due() (when time.Time, due bool)
}

type Settler interface {
	// Settled is called after each batch of events. The last call is after Close, with closed set.
	Settled(closed bool)
}

type Below interface {
	ResolverError(err error)
	ExitIdle()
	ResetBackoff(atLeast time.Duration)
	Close()
	childSnapshot() ChildSnapshot
}

// Shell is the common part of a policy. The policy may only use its fields and methods in events.
type Shell struct {
	ClientConn balancer.ClientConn
	Options    balancer.BuildOptions

	name      string
	methods   PolicyMethods
	scheduled Scheduled // nil if the policy calls Publish
	settler   Settler

	serial                    serial.Serializer
	resolverErrors, exitIdles serial.Slot

	configured    bool
	updating      bool
	closed        bool
	settled       bool
	mustPublish   bool
	hadUnassigned bool // some endpoints of the last update didn't belong to any child
	refusals      refusals
	removed       []*Instance // calls may still use these, so the next flush closes them

	published  balancer.State
	stateSince time.Time
	timer      serial.Timer
	timerEnd   time.Time

	channel        *stateattr.Channel
	records        serial.Records
	parentInstance *Instance     // the Instance that contains this policy, or nil if the parent has no Shell
	isLastAction   bool          // after the next publication, this batch has nothing left to do
	live           *live.Channel // nil if there's no debug page
	unwatch        func()        // only set for the topmost policy of a channel
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
		b.mustPublish = b.mustPublish || !b.configured // always publish the first state
		b.configured, b.updating = true, true
		b.channel = stateattr.ChannelOf(ccs.ResolverState)
		b.policy.Begin(config, hierarchy.Unseal(ccs.ResolverState))
	})
	// Other goroutines may have queued reports in the meantime. By running End in a second event,
	// we make sure that those are handled first.
	var err error
	b.serial.Do(func() {
		if !b.closed {
			b.policy.End()
			err = b.end()
		}
	})
	return err
}

// Do runs f in an event and waits for it to return. Don't call it in an event.
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

// refuse makes calls fail if there's never been a valid configuration. They would wait forever
// otherwise.
func (s *Shell) refuse(err error) error {
	s.serial.Do(func() {
		if !s.closed && !s.configured {
			s.publish(Failed(err))
		}
	})
	return err
}

// ResolverError passes err to all children. If there are none, calls fail with err.
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

// UpdateSubConnState does nothing because subchannels report to the children.
func (s *Shell) UpdateSubConnState(balancer.SubConn, balancer.SubConnState) {}

func (s *Shell) ExitIdle() {
	s.exitIdles.Enqueue(&s.serial, func() {
		if !s.closed {
			s.methods.ExitIdle()
		}
	})
}

type BackoffResetter interface {
	// ResetBackoff ends backoffs that have lasted at least that long. Like ExitIdle, it must not
	// block.
	ResetBackoff(atLeast time.Duration)
}

// ResetBackoff makes subchannels below the policy connect now if they've been in backoff for at
// least that long. It doesn't block. We can't use grpc.ClientConn.ResetConnectBackoff, because it
// has a data race with the creation of subchannels (grpc-go 1.85).
func (s *Shell) ResetBackoff(atLeast time.Duration) {
	s.Event(func() {
		for _, c := range s.methods.Children {
			c.ResetBackoff(atLeast)
		}
	})
}

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
