package weightedtarget

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/hierarchy"
	"github.com/understudy-lb/understudy/internal/childlb"
	core "github.com/understudy-lb/understudy/internal/core/weightedtarget"
	"github.com/understudy-lb/understudy/internal/lbconfig"
	"github.com/understudy-lb/understudy/internal/serial"
	"github.com/understudy-lb/understudy/internal/weighted"
)

// policy is the load-balancing policy. Everything after the serializer is used in its
// events only.
type policy struct {
	cc         balancer.ClientConn
	options    balancer.BuildOptions
	serializer serial.Serializer

	resolverErrors, exitIdles serial.Slot

	config   *lbconfig.WeightedTarget
	children map[string]*child // the retained ones too
	states   core.Children
	picker   *weighted.Picker // in use, if a child is READY
	err      error            // of the resolver, while there are no children

	published core.State // last

	updating bool // children are being updated: nothing is published
	stale    bool // what was published last is not what would be now
	closed   bool
	strays   bool // endpoints for no child have been logged
}

var errNoTargets = errors.New("weighted_target: no targets to pick from")

// UpdateClientConnState gives each child its configuration and endpoints. It returns
// after the policy has published its state: with the first error of a child, in the
// order of their names, if the policy is TRANSIENT_FAILURE; otherwise the error is in
// the child's state, and would have a parent take the whole policy for failed because
// one locality is empty.
func (p *policy) UpdateClientConnState(ccs balancer.ClientConnState) error {
	cfg, ok := ccs.BalancerConfig.(*lbconfig.WeightedTarget)
	if !ok {
		return fmt.Errorf("weighted_target: configuration is a %T, want what ParseConfig returned", ccs.BalancerConfig)
	}
	var err error
	p.serializer.Do(func() {
		p.updating = true
		p.config = cfg
		p.removeChildren()
		err = p.updateChildren(hierarchy.Unseal(ccs.ResolverState))
	})
	// What the children reported meanwhile is handled between the two events, so that
	// one state is published for all of it.
	p.serializer.Do(func() {
		p.updating, p.stale, p.err = false, true, nil
		if p.states.State() != core.TransientFailure {
			err = nil
		}
	})
	return err
}

// removeChildren removes the children that the configuration does not have: at once,
// or after the time that it says.
func (p *policy) removeChildren() {
	retention := time.Duration(p.config.RemovedChildRetention)
	for name, c := range p.children {
		if _, ok := p.config.Targets[name]; ok {
			continue
		}
		p.states.Remove(name)
		switch {
		case retention == 0:
			p.closeChild(c)
		case c.retained == nil:
			p.retain(c, retention)
		}
	}
}

func (p *policy) retain(c *child, retention time.Duration) {
	var timer *time.Timer
	timer = time.AfterFunc(retention, func() {
		p.serializer.Do(func() {
			// It may have come back, or gone again, since the timer fired.
			if c.retained == timer {
				p.closeChild(c)
			}
		})
	})
	c.retained = timer
}

func (p *policy) closeChild(c *child) {
	if c.retained != nil {
		c.retained.Stop()
		c.retained = nil
	}
	delete(p.children, c.name)
	c.policy.Close()
}

func (p *policy) updateChildren(state resolver.State) error {
	groups := hierarchy.Group(state.Endpoints)
	p.logStrays(state.Endpoints, groups)
	var first error
	for _, name := range slices.Sorted(maps.Keys(p.config.Targets)) {
		c := p.children[name]
		switch {
		case c == nil:
			c = p.newChild(name)
			p.children[name] = c
			p.states.Add(name)
		case c.retained != nil:
			c.retained.Stop()
			c.retained = nil
			p.states.Add(name)
			p.states.Report(name, stateOf(c.counts.ConnectivityState))
		}
		c.weight = p.config.Targets[name].Weight
		if err := p.updateChild(c, childlb.WithEndpoints(state, groups[name])); err != nil && first == nil {
			first = err
		}
	}
	return first
}

// logStrays says, once, that endpoints are for no child.
func (p *policy) logStrays(endpoints []resolver.Endpoint, groups map[string][]resolver.Endpoint) {
	if p.strays {
		return
	}
	n := len(endpoints)
	for name := range p.config.Targets {
		n -= len(groups[name])
	}
	if n > 0 {
		p.strays = true
		logger.Warningf("weighted_target: %d of %d endpoints get no calls, because their path names no target (said once)", n, len(endpoints))
	}
}

// flush publishes the policy's state after a batch of events, if it is a new one.
func (p *policy) flush() {
	if !p.stale || p.updating || p.closed {
		return
	}
	p.stale = false
	p.cc.UpdateState(p.state())
}

// state returns what to publish.
func (p *policy) state() balancer.State {
	if p.picker != nil {
		p.picker.Save()
		p.picker = nil
	}
	if p.states.Len() == 0 {
		p.published = core.TransientFailure
		if p.err != nil {
			return childlb.Failed(p.err)
		}
		return childlb.Failed(errNoTargets)
	}
	all := p.states.State()
	p.published = all
	if all == core.Connecting {
		return childlb.Connecting()
	}
	picker := p.pickerOf(p.states.In(all))
	if all == core.Ready {
		p.picker = picker // only what calls get counts for a child's place
	}
	return balancer.State{ConnectivityState: connectivityOf(all), Picker: picker}
}

// pickerOf returns a picker of the children of the given names.
func (p *policy) pickerOf(names []string) *weighted.Picker {
	var pickers []balancer.Picker
	var weights []uint32
	var places []*weighted.Place
	for _, name := range names {
		c := p.children[name]
		pickers = append(pickers, c.counts.Picker)
		weights = append(weights, c.weight)
		places = append(places, &c.place)
	}
	return weighted.New(pickers, weights, places)
}

// ResolverError gives the error to the children; without any, calls fail with it. It
// does not wait for that: a parent may call it from inside its UpdateState.
func (p *policy) ResolverError(err error) {
	p.resolverErrors.Enqueue(&p.serializer, func() {
		for _, c := range p.children {
			c.policy.ResolverError(err)
		}
		if p.states.Len() == 0 {
			p.err = fmt.Errorf("weighted_target: the resolver failed: %w", err)
			p.stale = true
		}
	})
}

// UpdateSubConnState does nothing: the policy has no subchannels.
func (p *policy) UpdateSubConnState(balancer.SubConn, balancer.SubConnState) {}

// ExitIdle asks the children to connect, as far as they are IDLE. It does not wait,
// either.
func (p *policy) ExitIdle() {
	p.exitIdles.Enqueue(&p.serializer, func() {
		for _, c := range p.children {
			if c.retained == nil {
				c.policy.ExitIdle()
			}
		}
	})
}

// Close closes the children, the retained ones too. Nothing is published afterwards.
func (p *policy) Close() {
	p.serializer.Do(func() {
		p.closed = true
		for _, c := range p.children {
			p.closeChild(c)
		}
	})
}
