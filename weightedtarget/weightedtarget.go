// Package weightedtarget is the policy understudy_weighted_target, of gRFC A28.
package weightedtarget

import (
	"encoding/json"
	"fmt"
	"slices"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/serviceconfig"

	"github.com/understudy-lb/understudy/hierarchy"
	"github.com/understudy-lb/understudy/internal/childlb"
	"github.com/understudy-lb/understudy/internal/edf"
	"github.com/understudy-lb/understudy/internal/lbconfig"
	"github.com/understudy-lb/understudy/internal/serial"
)

// Name is the name the policy is registered under.
const Name = "understudy_weighted_target"

func init() { balancer.Register(NewBuilder(Name)) }

// NewBuilder returns the builder under another name.
func NewBuilder(name string) balancer.Builder { return builder{name} }

type builder struct{ name string }

func (b builder) Name() string  { return b.name }
func (b builder) OwnsSubConns() {}

type config struct {
	serviceconfig.LoadBalancingConfig `json:"-"`
	Targets                           map[string]struct {
		Weight      uint32          `json:"weight"`
		ChildPolicy lbconfig.Policy `json:"childPolicy"`
	} `json:"targets"`
}

func (builder) ParseConfig(raw json.RawMessage) (serviceconfig.LoadBalancingConfig, error) {
	c := &config{}
	if err := json.Unmarshal(raw, c); err != nil {
		return nil, fmt.Errorf("weighted_target: %w", err)
	}
	return c, nil
}

func (b builder) Build(cc balancer.ClientConn, opts balancer.BuildOptions) balancer.Balancer {
	p := &policy{cc: cc, opts: opts, children: map[string]*child{}}
	p.serial.SetFlush(p.flush)
	return p
}

type child struct {
	lb     *childlb.Child
	state  balancer.State
	failed bool
	weight uint32
}

type policy struct {
	cc       balancer.ClientConn
	opts     balancer.BuildOptions
	serial   serial.Serializer
	children map[string]*child
	dirty    bool
	updating bool
}

func (p *policy) UpdateClientConnState(s balancer.ClientConnState) error {
	cfg, ok := s.BalancerConfig.(*config)
	if !ok {
		return balancer.ErrBadResolverState
	}
	var err error
	p.serial.Do(func() {
		p.updating = true
		state := hierarchy.Unseal(s.ResolverState)
		groups := hierarchy.Group(state.Endpoints)
		state.Addresses = nil
		for name, c := range p.children {
			if _, ok := cfg.Targets[name]; !ok {
				c.lb.Close()
				delete(p.children, name)
			}
		}
		for name, t := range cfg.Targets {
			c := p.children[name]
			if c == nil {
				c = &child{state: childlb.Connecting()}
				c.lb = childlb.New(childlb.Parent{ClientConn: p.cc, Options: p.opts, Serializer: &p.serial}, func(s balancer.State) {
					c.failed = s.ConnectivityState == connectivity.TransientFailure || c.failed && s.ConnectivityState == connectivity.Connecting
					c.state = s
					p.dirty = true
				}, func() { p.cc.ResolveNow(resolver.ResolveNowOptions{}) })
				p.children[name] = c
			}
			c.weight = t.Weight
			state.Endpoints = groups[name]
			if e := c.lb.Update(t.ChildPolicy, state); e != nil {
				err = e
			}
		}
	})
	p.serial.Do(func() { p.updating = false; p.dirty = true })
	return err
}

func (p *policy) flush() {
	if !p.dirty || p.updating {
		return
	}
	p.dirty = false
	var names []string
	for n := range p.children {
		names = append(names, n)
	}
	slices.Sort(names)
	var entries []edf.Entry
	var pickers []balancer.Picker
	connecting := false
	last := childlb.Failed(fmt.Errorf("weighted_target: no targets"))
	for _, n := range names {
		c := p.children[n]
		switch {
		case c.state.ConnectivityState == connectivity.Ready:
			entries = append(entries, edf.Entry{Weight: c.weight})
			pickers = append(pickers, c.state.Picker)
		case c.failed:
			last = c.state
			last.ConnectivityState = connectivity.TransientFailure
		default:
			connecting = true
		}
	}
	switch {
	case len(entries) > 0:
		p.cc.UpdateState(balancer.State{ConnectivityState: connectivity.Ready, Picker: &picker{edf.New(entries), pickers}})
	case connecting:
		p.cc.UpdateState(childlb.Connecting())
	default:
		p.cc.UpdateState(last)
	}
}

type picker struct {
	s       *edf.Scheduler
	pickers []balancer.Picker
}

func (p *picker) Pick(i balancer.PickInfo) (balancer.PickResult, error) {
	return p.pickers[p.s.Next()].Pick(i)
}

func (p *policy) ResolverError(err error) {
	p.serial.Do(func() {
		for _, c := range p.children {
			c.lb.ResolverError(err)
		}
	})
}

func (p *policy) UpdateSubConnState(balancer.SubConn, balancer.SubConnState) {}

func (p *policy) ExitIdle() {
	p.serial.Do(func() {
		for _, c := range p.children {
			c.lb.ExitIdle()
		}
	})
}

func (p *policy) Close() {
	p.serial.Do(func() {
		p.updating = true
		for _, c := range p.children {
			c.lb.Close()
		}
	})
}
