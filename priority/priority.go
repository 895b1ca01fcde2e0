// Package priority is the policy understudy_priority, of gRFC A56.
package priority

import (
	"encoding/json"
	"fmt"
	"time"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/grpclog"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/serviceconfig"

	"github.com/understudy-lb/understudy/hierarchy"
	"github.com/understudy-lb/understudy/internal/childlb"
	"github.com/understudy-lb/understudy/internal/failover"
	"github.com/understudy-lb/understudy/internal/lbconfig"
	"github.com/understudy-lb/understudy/internal/serial"
)

// Name is the name the policy is registered under.
const Name = "understudy_priority"

var logger = grpclog.Component("understudy")

func init() { balancer.Register(NewBuilder(Name)) }

// NewBuilder returns the builder under another name.
func NewBuilder(name string) balancer.Builder { return builder{name} }

type builder struct{ name string }

func (b builder) Name() string  { return b.name }
func (b builder) OwnsSubConns() {}

type childConfig struct {
	Config                     lbconfig.Policy `json:"config"`
	IgnoreReresolutionRequests bool            `json:"ignoreReresolutionRequests"`
}

type config struct {
	serviceconfig.LoadBalancingConfig `json:"-"`
	Children                          map[string]childConfig `json:"children"`
	Priorities                        []string               `json:"priorities"`
	FailoverTimeout                   lbconfig.Duration      `json:"failoverTimeout"`
	ChildRetention                    lbconfig.Duration      `json:"childRetention"`
	RemovedChildRetention             lbconfig.Duration      `json:"removedChildRetention"`
}

func (builder) ParseConfig(raw json.RawMessage) (serviceconfig.LoadBalancingConfig, error) {
	c := &config{
		FailoverTimeout:       lbconfig.Duration(10 * time.Second),
		ChildRetention:        lbconfig.Duration(15 * time.Minute),
		RemovedChildRetention: lbconfig.Duration(15 * time.Minute),
	}
	if err := json.Unmarshal(raw, c); err != nil {
		return nil, fmt.Errorf("priority: %w", err)
	}
	return c, nil
}

func (b builder) Build(cc balancer.ClientConn, opts balancer.BuildOptions) balancer.Balancer {
	return &policy{cc: cc, opts: opts, core: failover.New(), children: map[string]*child{}}
}

type child struct {
	lb         *childlb.Child
	state      balancer.State
	failover   *time.Timer
	deactivate *time.Timer
}

type policy struct {
	cc       balancer.ClientConn
	opts     balancer.BuildOptions
	serial   serial.Serializer
	core     *failover.Core
	config   *config
	state    resolver.State
	groups   map[string][]resolver.Endpoint
	children map[string]*child
	resolve  func(string)
	err      error
	closed   bool
}

func (p *policy) UpdateClientConnState(s balancer.ClientConnState) error {
	cfg, ok := s.BalancerConfig.(*config)
	if !ok {
		return balancer.ErrBadResolverState
	}
	p.serial.Do(func() {
		state := hierarchy.Unseal(s.ResolverState)
		p.resolve, state = hierarchy.TakeResolveNow(state)
		p.config, p.state = cfg, state
		p.groups = hierarchy.Group(state.Endpoints)
		p.err = nil
		var names []string
		for name := range cfg.Children {
			names = append(names, name)
		}
		p.apply(p.core.BeginUpdate(cfg.Priorities, names))
	})
	var err error
	p.serial.Do(func() { p.apply(p.core.EndUpdate()); err = p.err })
	return err
}

func (p *policy) ResolverError(err error) {
	p.serial.Do(func() {
		for _, c := range p.children {
			c.lb.ResolverError(err)
		}
		if len(p.children) == 0 {
			p.cc.UpdateState(childlb.Failed(err))
		}
	})
}

func (p *policy) UpdateSubConnState(balancer.SubConn, balancer.SubConnState) {}

func (p *policy) ExitIdle() {
	p.serial.Do(func() {
		if c := p.children[p.core.Current()]; c != nil {
			c.lb.ExitIdle()
		}
	})
}

func (p *policy) Close() {
	p.serial.Do(func() { p.closed = true; p.apply(p.core.Close()) })
}

func (p *policy) update(name string) {
	state := p.state
	state.Addresses = nil
	state.Endpoints = p.groups[name]
	if err := p.children[name].lb.Update(p.config.Children[name].Config, state); err != nil {
		p.err = err
	}
}

func (p *policy) apply(actions []failover.Action) {
	for _, a := range actions {
		c := p.children[a.Child]
		switch a.Kind {
		case failover.Create:
			p.create(a.Child)
		case failover.Update:
			p.update(a.Child)
		case failover.Destroy:
			c.lb.Close()
			delete(p.children, a.Child)
		case failover.StartFailover:
			c.failover = p.after(p.config.FailoverTimeout, a.Child, c, func() []failover.Action { return p.core.FailoverFired(a.Child) })
		case failover.StopFailover:
			c.failover.Stop()
		case failover.StartDeactivation:
			d := p.config.ChildRetention
			if a.Removed {
				d = p.config.RemovedChildRetention
			}
			c.deactivate = p.after(d, a.Child, c, func() []failover.Action { return p.core.DeactivationFired(a.Child) })
		case failover.StopDeactivation:
			c.deactivate.Stop()
		case failover.Use:
			p.cc.UpdateState(c.state)
		case failover.UseTimedOut:
			p.cc.UpdateState(childlb.Failed(fmt.Errorf("priority: child %s did not connect in time", a.Child)))
		case failover.Empty:
			p.cc.UpdateState(childlb.Failed(fmt.Errorf("priority policy has empty priority list")))
		}
	}
}

func (p *policy) after(d lbconfig.Duration, name string, c *child, fired func() []failover.Action) *time.Timer {
	return time.AfterFunc(time.Duration(d), func() {
		p.serial.Do(func() {
			if !p.closed && p.children[name] == c {
				p.apply(fired())
			}
		})
	})
}

func (p *policy) create(name string) {
	c := &child{state: childlb.Connecting()}
	c.lb = childlb.New(childlb.Parent{ClientConn: p.cc, Options: p.opts, Serializer: &p.serial}, func(s balancer.State) {
		c.state = s
		p.apply(p.core.Reported(name, convert(s.ConnectivityState)))
	}, func() {
		cfg := p.config.Children[name]
		if cfg.IgnoreReresolutionRequests {
			return
		}
		if p.resolve != nil {
			p.resolve(name)
			return
		}
		p.cc.ResolveNow(resolver.ResolveNowOptions{})
	})
	p.children[name] = c
	p.update(name)
}

func convert(s connectivity.State) failover.State {
	switch s {
	case connectivity.Ready:
		return failover.Ready
	case connectivity.Idle:
		return failover.Idle
	case connectivity.Connecting:
		return failover.Connecting
	}
	return failover.TransientFailure
}
