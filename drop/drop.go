// Package drop is the policy understudy_drop.
package drop

import (
	"encoding/json"
	"fmt"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/serviceconfig"

	"github.com/understudy-lb/understudy/internal/childlb"
	"github.com/understudy-lb/understudy/internal/lbconfig"
	"github.com/understudy-lb/understudy/internal/serial"
)

// Name is the name the policy is registered under.
const Name = "understudy_drop"

func init() { balancer.Register(NewBuilder(Name)) }

// NewBuilder returns the builder under another name.
func NewBuilder(name string) balancer.Builder { return builder{name} }

type builder struct{ name string }

func (b builder) Name() string  { return b.name }
func (b builder) OwnsSubConns() {}

type config struct {
	serviceconfig.LoadBalancingConfig `json:"-"`
	ChildPolicy                       lbconfig.Policy `json:"childPolicy"`
}

func (builder) ParseConfig(raw json.RawMessage) (serviceconfig.LoadBalancingConfig, error) {
	c := &config{}
	if err := json.Unmarshal(raw, c); err != nil {
		return nil, fmt.Errorf("drop: %w", err)
	}
	return c, nil
}

func (b builder) Build(cc balancer.ClientConn, opts balancer.BuildOptions) balancer.Balancer {
	p := &policy{cc: cc}
	p.child = childlb.New(childlb.Parent{ClientConn: cc, Options: opts, Serializer: &p.serial}, cc.UpdateState, func() { cc.ResolveNow(resolver.ResolveNowOptions{}) })
	return p
}

type policy struct {
	cc     balancer.ClientConn
	serial serial.Serializer
	child  *childlb.Child
}

func (p *policy) UpdateClientConnState(s balancer.ClientConnState) error {
	cfg, ok := s.BalancerConfig.(*config)
	if !ok {
		return balancer.ErrBadResolverState
	}
	var err error
	p.serial.Do(func() { err = p.child.Update(cfg.ChildPolicy, s.ResolverState) })
	p.serial.Do(func() {})
	return err
}

func (p *policy) ResolverError(err error) { p.serial.Do(func() { p.child.ResolverError(err) }) }

func (p *policy) UpdateSubConnState(balancer.SubConn, balancer.SubConnState) {}

func (p *policy) ExitIdle() { p.serial.Do(p.child.ExitIdle) }

func (p *policy) Close() { p.serial.Do(p.child.Close) }
