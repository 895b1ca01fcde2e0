package priority

import (
	"fmt"
	"sync/atomic"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/hierarchy"
	"github.com/understudy-lb/understudy/internal/childlb"
	core "github.com/understudy-lb/understudy/internal/core/priority"
	"github.com/understudy-lb/understudy/internal/lbconfig"
	"github.com/understudy-lb/understudy/internal/serial"
)

// policy is a balancer.Balancer. Its methods may be called from any goroutine and
// return when they have been applied, but for ResolverError and ExitIdle, which only
// queue; after Close they do nothing. Children report at any time, also from inside a
// call into them: reports are queued, and nothing calls into a child on the stack of
// its report.
type policy struct {
	cc     balancer.ClientConn
	opts   balancer.BuildOptions
	serial serial.Serializer

	resolverErrors, exitIdles serial.Slot

	// reresolution is the one thing that children read on their own stacks.
	reresolution atomic.Pointer[reresolution]

	// What follows is only used in events of serial.

	core     *core.Core
	children map[string]*child
	config   *lbconfig.Priority // nil before the first update
	state    resolver.State
	groups   map[string][]resolver.Endpoint
	errors   updateErrors // of the update under way
	updating bool         // between beginUpdate and the end of endUpdate
	inUse    string       // the child whose picker is published, "" for none
	strays   bool         // the last update had endpoints that belong to no child
	closed   bool

	published connectivity.State // last, of a child or for no priorities
}

// UpdateClientConnState applies a configuration, which must come from ParseConfig,
// and endpoints with paths (package hierarchy). What a child rejects is logged, and the
// rest is applied all the same. It is returned as an error only if the policy itself is
// TRANSIENT_FAILURE: a parent takes an error for the failure of the whole policy. It is
// balancer.ErrBadResolverState itself where the children said nothing else. A
// configuration of another type is an error that wraps balancer.ErrBadResolverState, and
// changes nothing.
func (p *policy) UpdateClientConnState(s balancer.ClientConnState) error {
	config, ok := s.BalancerConfig.(*lbconfig.Priority)
	if !ok {
		err := fmt.Errorf("priority: configuration of type %T given, want one that ParseConfig returned: %w", s.BalancerConfig, balancer.ErrBadResolverState)
		p.serial.Do(func() { p.failWithoutConfig(err) })
		return err
	}
	// Two events: what children report meanwhile on other stacks, say on that of another
	// child's update, is queued between them, and so is part of the state on which the
	// second chooses (A56, "Configuration Updates").
	p.serial.Do(func() { p.beginUpdate(config, s.ResolverState) })
	var err error
	p.serial.Do(func() { err = p.endUpdate() })
	return err
}

func (p *policy) beginUpdate(config *lbconfig.Priority, state resolver.State) {
	if p.closed {
		return
	}
	p.updating = true
	resolveNow, state := hierarchy.TakeResolveNow(hierarchy.Unseal(state))
	p.config, p.state = config, state
	p.groups = hierarchy.Group(state.Endpoints)
	p.reresolution.Store(&reresolution{children: config.Children, resolveNow: resolveNow})
	p.logStrays()
	p.apply(p.core.BeginUpdate(coreConfig(config)))
}

func (p *policy) endUpdate() error {
	p.apply(p.core.EndUpdate())
	err := p.errors.join()
	p.errors, p.updating = nil, false
	if p.published != connectivity.TransientFailure {
		return nil
	}
	return err
}

// failWithoutConfig makes calls fail rather than wait where no configuration has
// been applied that they could wait for.
func (p *policy) failWithoutConfig(err error) {
	if !p.closed && p.config == nil {
		p.cc.UpdateState(childlb.Failed(err))
	}
}

// ResolverError passes err on to all children, those too that are deactivated. If
// there are none, calls fail with it. It does not wait for that: a parent may call it
// from inside its UpdateState.
func (p *policy) ResolverError(err error) {
	p.resolverErrors.Enqueue(&p.serial, func() {
		if p.closed {
			return
		}
		for _, c := range p.children {
			c.lb.ResolverError(err)
		}
		if len(p.children) == 0 {
			p.cc.UpdateState(childlb.Failed(fmt.Errorf("priority: no child to use, and the resolver reports: %w", err)))
		}
	})
}

// UpdateSubConnState does nothing: subchannels report to the child that made them.
func (p *policy) UpdateSubConnState(balancer.SubConn, balancer.SubConnState) {}

// ExitIdle asks the child in use to connect. It does not wait, either.
func (p *policy) ExitIdle() {
	p.exitIdles.Enqueue(&p.serial, func() {
		if c, ok := p.children[p.core.InUse()]; ok {
			c.lb.ExitIdle()
		}
	})
}

// Close closes all children and stops their timers. Nothing is published
// afterwards.
func (p *policy) Close() {
	p.serial.Do(func() {
		p.closed = true
		p.apply(p.core.Close())
	})
}
