package drop

import (
	"errors"
	"fmt"
	"slices"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/childlb"
	"github.com/understudy-lb/understudy/internal/lbconfig"
	"github.com/understudy-lb/understudy/internal/serial"
)

// policy is the load-balancing policy. Everything after the serializer is used in its
// events only.
type policy struct {
	cc         balancer.ClientConn
	target     string
	serializer serial.Serializer

	resolverErrors, exitIdles serial.Slot

	child      *childlb.Child
	state      balancer.State // the child's, as last reported
	categories []lbconfig.DropCategory
	updating   bool // the child is being updated: nothing is published
	stale      bool // what was published last is not what would be now
	closed     bool
}

func newPolicy(cc balancer.ClientConn, opts balancer.BuildOptions) *policy {
	p := &policy{cc: cc, target: opts.Target.String(), state: childlb.Connecting()}
	p.child = childlb.New(
		childlb.Parent{ClientConn: cc, Options: opts, Serializer: &p.serializer},
		p.reported,
		func() { cc.ResolveNow(resolver.ResolveNowOptions{}) })
	p.serializer.SetFlush(p.flush)
	return p
}

func (p *policy) reported(state balancer.State) {
	p.state, p.stale = state, true
}

// UpdateClientConnState gives the child its configuration and endpoints, and returns
// its error, after the policy has published its state.
func (p *policy) UpdateClientConnState(ccs balancer.ClientConnState) error {
	cfg, ok := ccs.BalancerConfig.(*lbconfig.Drop)
	if !ok {
		return fmt.Errorf("drop: configuration is a %T, want what ParseConfig returned", ccs.BalancerConfig)
	}
	var err error
	p.serializer.Do(func() {
		p.updating = true
		// The new drops are published with the child's next state, or, if it has none
		// to report, with the old one.
		if !slices.Equal(p.categories, cfg.DropCategories) {
			p.categories, p.stale = slices.Clone(cfg.DropCategories), true
		}
		state := ccs.ResolverState
		if len(state.Addresses) == 0 {
			state = childlb.WithEndpoints(state, state.Endpoints)
		}
		if err = p.child.Update(cfg.ChildPolicy, state); err != nil {
			// The refusal comes after what the child reported inside its update, which
			// is queued.
			p.serializer.Enqueue(func() { p.refused(err) })
		}
	})
	p.serializer.Do(func() { p.updating = false })
	return err
}

// refused handles an error of the child's update: the child then counts as failed with
// that error, unless it is READY or IDLE.
func (p *policy) refused(err error) {
	named := fmt.Errorf("drop: child: %w", err)
	if !errors.Is(err, balancer.ErrBadResolverState) { // which says nothing; the child's state does
		logger.Warning(named)
	}
	if childlb.RefusalCounts(p.state.ConnectivityState, err) {
		p.reported(childlb.Failed(named))
	}
}

// flush publishes the child's state after a batch of events, if it is a new one.
func (p *policy) flush() {
	if !p.stale || p.updating || p.closed {
		return
	}
	p.stale = false
	state := p.state
	if state.ConnectivityState == connectivity.Ready && dropsAny(p.categories) {
		state.Picker = &picker{
			child:      state.Picker,
			categories: p.categories,
			recorder:   p.cc.MetricsRecorder(),
			target:     p.target,
		}
	}
	p.cc.UpdateState(state)
}

func dropsAny(categories []lbconfig.DropCategory) bool {
	return slices.ContainsFunc(categories, func(c lbconfig.DropCategory) bool { return c.RequestsPerMillion > 0 })
}

// ResolverError gives the error to the child; without one, calls fail with it. It does
// not wait for that: a parent may call it from inside its UpdateState.
func (p *policy) ResolverError(err error) {
	p.resolverErrors.Enqueue(&p.serializer, func() {
		if !p.child.Exists() {
			p.reported(childlb.Failed(fmt.Errorf("drop: the resolver failed: %w", err)))
			return
		}
		p.child.ResolverError(err)
	})
}

// UpdateSubConnState does nothing: the policy has no subchannels.
func (p *policy) UpdateSubConnState(balancer.SubConn, balancer.SubConnState) {}

// ExitIdle asks the child to connect. It does not wait, either.
func (p *policy) ExitIdle() { p.exitIdles.Enqueue(&p.serializer, p.child.ExitIdle) }

// Close closes the child. Nothing is published afterwards.
func (p *policy) Close() {
	p.serializer.Do(func() {
		p.closed = true
		p.child.Close()
	})
}
