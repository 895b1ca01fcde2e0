package weightedroundrobin

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"time"

	"google.golang.org/grpc/attributes"
	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/hierarchy"
	"github.com/understudy-lb/understudy/internal/lbconfig"
	"github.com/understudy-lb/understudy/internal/serial"
)

// policy is the load-balancing policy. Everything but the first group of fields is
// used in events of the serializer only.
type policy struct {
	cc         balancer.ClientConn
	options    balancer.BuildOptions
	leaf       balancer.Builder
	serializer serial.Serializer

	resolverErrors, exitIdles serial.Slot

	config     *lbconfig.WeightedRoundRobin
	attributes *attributes.Attributes // of the last update
	updates    uint64                 // how many there were
	children   map[key]*child
	order      []*child                         // in the order of the endpoints
	count      [connectivity.Shutdown + 1]int   // of children in each state
	sum        uint64                           // of the children's weights
	lastFailed *child                           // that reported TRANSIENT_FAILURE last
	err        error                            // why there are no children
	logged     struct{ twice, empty, big bool } // what has been said once

	updating bool // children are being updated: nothing is published
	closed   bool

	publication
}

var errNoEndpoints = errors.New("weighted_round_robin: the resolver gave no endpoints")

// UpdateClientConnState gives each endpoint its child. It returns after the policy
// has published its state, unless the picker in use would be made again as it is:
// an update of one locality reaches them all. It returns the first error of a child;
// without endpoints, balancer.ErrBadResolverState.
func (p *policy) UpdateClientConnState(ccs balancer.ClientConnState) error {
	cfg, ok := ccs.BalancerConfig.(*lbconfig.WeightedRoundRobin)
	if !ok && ccs.BalancerConfig != nil {
		return fmt.Errorf("weighted_round_robin: configuration is a %T, want what ParseConfig returned", ccs.BalancerConfig)
	}
	if cfg == nil {
		cfg = lbconfig.NewWeightedRoundRobin()
	}
	var err error
	var removed []*child
	p.serializer.Do(func() {
		p.updating = true
		before := p.shares()
		same := reflect.DeepEqual(p.config, cfg)
		p.config = cfg
		removed, err = p.update(leafState(hierarchy.Unseal(ccs.ResolverState)))
		p.stale = p.stale || !same || !slices.Equal(before, p.shares())
	})
	// What the children reported meanwhile is handled between the two events, so
	// that one state is published for all of it.
	p.serializer.Do(func() {
		p.updating = false
		if p.stale || p.picker == nil || p.published != p.aggregate() {
			p.publish(time.Now())
		}
		// Only now, since calls were still using the last picker.
		for _, c := range removed {
			c.balancer.Close()
		}
	})
	return err
}

// share is a child and its weight.
type share struct {
	child  *child
	weight uint32
}

// shares returns what a picker is made of, but for the children's states.
func (p *policy) shares() []share {
	all := make([]share, len(p.order))
	for i, c := range p.order {
		all[i] = share{c, c.weight}
	}
	return all
}

// update makes the children those of the endpoints of state and updates those
// that need it. It returns the children that are to be closed.
func (p *policy) update(state resolver.State) (removed []*child, err error) {
	p.updates++
	changed := p.assign(state.Endpoints)
	for k, c := range p.children {
		if c.update != p.updates {
			delete(p.children, k)
			c.remove()
			removed = append(removed, c)
		}
	}
	p.fitWeights()
	if len(p.order) == 0 {
		p.err = errNoEndpoints
		return removed, balancer.ErrBadResolverState
	}
	all := !sameAttributes(p.attributes, state.Attributes)
	p.attributes = state.Attributes
	first := 0
	if p.config.StartPoint == lbconfig.StartRandom {
		first = rand.IntN(len(p.order))
	}
	for i := range p.order {
		i = (i + first) % len(p.order)
		if all || changed[i] {
			if e := p.order[i].updateClientConnState(state.Attributes); e != nil {
				err = cmp.Or(err, e)
			}
		}
	}
	return removed, err
}

// ResolverError gives the error to the children; without any, calls fail with it. It
// does not wait for that: a parent may call it from inside its UpdateState.
func (p *policy) ResolverError(err error) {
	p.resolverErrors.Enqueue(&p.serializer, func() {
		// What the children report meanwhile is handled in the next batch, and so
		// published once.
		for _, c := range p.order {
			c.balancer.ResolverError(err)
		}
		if len(p.order) == 0 {
			p.err = fmt.Errorf("weighted_round_robin: the resolver failed: %w", err)
			p.stale = true
		}
	})
}

// UpdateSubConnState does nothing: each subchannel has a listener.
func (p *policy) UpdateSubConnState(balancer.SubConn, balancer.SubConnState) {}

// ExitIdle asks the children that are IDLE to connect. It does not wait, either.
func (p *policy) ExitIdle() {
	p.exitIdles.Enqueue(&p.serializer, func() {
		for _, c := range p.order {
			if c.state.ConnectivityState == connectivity.Idle {
				c.balancer.ExitIdle()
			}
		}
	})
}

// Close closes the children. Nothing is published afterwards.
func (p *policy) Close() {
	p.serializer.Do(func() {
		p.closed = true
		p.stopTimer()
		for _, c := range p.order {
			c.remove()
			c.balancer.Close()
		}
		p.order, p.children = nil, nil
	})
}
