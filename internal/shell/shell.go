// Package shell does what all policies with children do. It implements
// balancer.Balancer, runs one event at a time, owns the children and the timers,
// publishes, and makes snapshots. A policy adds a configuration, a core that decides,
// and the translation of the core's decisions.
//
// The rules that hold for all of them:
//
//   - An update is two events, Begin and End. What children report from inside the
//     first is known to the second, and nothing is published in between.
//   - A state is published once after a batch of events, where it is a new one.
//   - A configuration of another type is refused; where there was none before, calls
//     fail with the reason.
//   - A child that refuses an update counts as failed with its error, unless it is READY
//     or IDLE. UpdateClientConnState returns what children refused only if the policy
//     itself has failed, because a parent takes an error for the failure of the whole.
//   - UpdateClientConnState and Close return when they have been applied. ResolverError
//     and ExitIdle never wait: a parent may call them from inside its UpdateState. After
//     Close, nothing is published and no child hears anything.
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

// Logger is the log of all policies.
var Logger = grpclog.Component("understudy")

// Policy is what a policy adds to its shell. Its methods are called in events, and not
// after Close. C is its configuration, a type of package lbconfig.
type Policy[C any] interface {
	// Begin applies a configuration and a resolver's state: it updates the children.
	Begin(config *C, state resolver.State)
	// End ends the update, when all is known that children reported meanwhile.
	End()
	PolicyMethods
}

// PolicyMethods are the methods of a Policy that do not depend on its configuration.
type PolicyMethods interface {
	// State returns what is to be published.
	State() balancer.State
	// Children yields all children that exist, with their names.
	Children(yield func(name string, child Below) bool)
	// ExitIdle asks those children to connect that the policy wants connected.
	ExitIdle()
}

// Scheduled is a policy that decides itself when to publish. All others call
// Shell.Publish.
type Scheduled interface {
	// Due returns whether State is to be published, and when; the zero time means at
	// once.
	Due() (at time.Time, due bool)
}

// Settler is a policy that looks at itself after each batch of events, and once after
// Close.
type Settler interface {
	Settled(closed bool)
}

// Below is a child as the shell sees it: a Child or an Instance.
type Below interface {
	ResolverError(err error)
	ExitIdle()
	ResetBackoff()
	Close()
	look() ChildSnapshot
}

// Shell is the shell of one policy. Its fields and methods are for the policy, in
// events.
type Shell struct {
	// ClientConn is the parent's; subchannels are made there.
	ClientConn balancer.ClientConn
	// Options are the options that the policy was built with; its children get them,
	// too.
	Options balancer.BuildOptions

	name      string // in errors and logs
	parts     PolicyMethods
	scheduled Scheduled // nil where the policy is not
	settler   Settler   // likewise

	serial                    serial.Serializer
	resolverErrors, exitIdles serial.Slot

	configured bool // there was a configuration of the right type
	updating   bool // between Begin and the end of End
	closed     bool
	settled    bool // the policy has heard of Close
	stale      bool // Publish was called
	strays     bool // the last update had endpoints of no child
	refusals   refusals
	removed    []*Instance // to be closed once they get no more calls

	published balancer.State // last
	since     time.Time      // when its connectivity state became so
	timer     serial.Timer   // runs until wakeAt
	wakeAt    time.Time

	channel *stateattr.Channel
	above   *Instance     // what it is in another policy of this kind, nil where none is above
	ending  bool          // the batch: nothing is done in it after what is published now
	live    *live.Channel // nil where nobody shows channels
	unwatch func()        // where it is the top of a channel that is shown
	watch
}

// lb is a balancer.Balancer.
type lb[C any] struct {
	Shell
	policy   Policy[C]
	fallback func() *C
}

// UpdateClientConnState applies a configuration and a resolver's state.
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
	// What children report meanwhile on other stacks, say on that of another child's
	// update, is queued between the two events.
	var err error
	b.serial.Do(func() {
		if !b.closed {
			b.policy.End()
			err = b.end()
		}
	})
	return err
}

// Do runs f in an event, and returns when that is over. An event must not call it.
func (s *Shell) Do(f func()) { s.serial.Do(f) }

// end ends an update, and returns its error.
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

// refuse makes calls fail if there has been no usable configuration; otherwise they
// would wait for ever.
func (s *Shell) refuse(err error) error {
	s.serial.Do(func() {
		if !s.closed && !s.configured {
			s.publish(Failed(err))
		}
	})
	return err
}

// ResolverError passes the error to all children. Without children, calls fail with it.
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

// UpdateSubConnState does nothing: subchannels report to the child that made them.
func (s *Shell) UpdateSubConnState(balancer.SubConn, balancer.SubConnState) {}

// ExitIdle asks the children to connect that the policy wants connected.
func (s *Shell) ExitIdle() {
	s.exitIdles.Enqueue(&s.serial, func() {
		if !s.closed {
			s.parts.ExitIdle()
		}
	})
}

// BackoffResetter is a policy that can try at once what waits for a backoff.
type BackoffResetter interface {
	// ResetBackoff is called as ExitIdle is, and waits as little.
	ResetBackoff()
}

// ResetBackoff has all below tried at once that waits for gRPC's backoff, in an event.
//
// grpc.ClientConn.ResetConnectBackoff would do the same. It reads a map without a lock while
// subchannels are made and removed (grpc-go 1.85), and Go ends the process for that.
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
