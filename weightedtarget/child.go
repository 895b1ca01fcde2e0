package weightedtarget

import (
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/childlb"
	core "github.com/understudy-lb/understudy/internal/core/weightedtarget"
	"github.com/understudy-lb/understudy/internal/lbconfig"
	"github.com/understudy-lb/understudy/internal/weighted"
)

// child is one target. Its fields are used in events only.
type child struct {
	name   string
	policy *childlb.Child
	weight uint32
	place  weighted.Place // as of the last picker that had it

	reported connectivity.State // last
	counts   balancer.State     // what it counts as: not always what it reported

	retained *time.Timer // runs while the configuration does not have the child
}

func (p *policy) newChild(name string) *child {
	c := &child{name: name, reported: connectivity.Connecting, counts: childlb.Connecting()}
	c.place = weighted.NewPlace(p.config.StartPoint == lbconfig.StartRandom)
	parent := childlb.Parent{ClientConn: p.cc, Options: p.options, Serializer: &p.serializer}
	c.policy = childlb.New(parent,
		func(state balancer.State) { p.reported(c, state) },
		func() { p.cc.ResolveNow(resolver.ResolveNowOptions{}) })
	return c
}

// reported handles a state that c reported.
func (p *policy) reported(c *child, state balancer.State) {
	c.reported = state.ConnectivityState
	if c.retained != nil {
		// It is not in the configuration, and so not in p.states: what it counts as
		// when it comes back is kept here, by the same rule.
		var alone core.Children
		alone.Add(c.name)
		alone.Report(c.name, stateOf(c.counts.ConnectivityState))
		if alone.Report(c.name, stateOf(state.ConnectivityState)) {
			c.counts = state
		}
		return
	}
	before, now := stateOf(c.counts.ConnectivityState), stateOf(state.ConnectivityState)
	if p.states.Report(c.name, now) {
		c.counts = state
		p.stale = p.stale || before == p.published || now == p.published || p.states.State() != p.published
	}
}

// updateChild gives c its policy, configuration and endpoints. A child that fails its
// update counts as failed with that error, unless it is READY or IDLE: then its last
// good state stays in use.
func (p *policy) updateChild(c *child, state resolver.State) error {
	err := c.policy.Update(p.config.Targets[c.name].ChildPolicy, state)
	if err == nil {
		return nil
	}
	named := fmt.Errorf("weighted_target: target %q: %w", c.name, err)
	if !errors.Is(err, balancer.ErrBadResolverState) { // which says nothing; the child's state does
		logger.Warning(named)
	}
	// The refusal comes after what the child reported inside its update, which is
	// queued.
	p.serializer.Enqueue(func() {
		if p.children[c.name] == c && childlb.RefusalCounts(c.reported, err) {
			p.reported(c, childlb.Failed(named))
		}
	})
	return err // as it is: callers compare it with balancer.ErrBadResolverState
}

// stateOf returns the core's name of a state.
func stateOf(state connectivity.State) core.State {
	switch state {
	case connectivity.Ready:
		return core.Ready
	case connectivity.Connecting:
		return core.Connecting
	case connectivity.Idle:
		return core.Idle
	}
	return core.TransientFailure
}

// connectivityOf is the inverse of stateOf.
func connectivityOf(state core.State) connectivity.State {
	switch state {
	case core.Ready:
		return connectivity.Ready
	case core.Connecting:
		return connectivity.Connecting
	case core.Idle:
		return connectivity.Idle
	}
	return connectivity.TransientFailure
}
