package main

import (
	"encoding/json"
	"fmt"

	orcapb "github.com/cncf/xds/go/xds/data/orca/v3"
	"google.golang.org/grpc/balancer"
	_ "google.golang.org/grpc/balancer/leastrequest"
	"google.golang.org/grpc/balancer/roundrobin"
	"google.golang.org/grpc/balancer/weightedroundrobin"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/testing/lbtest"
)

// stubChild replaces pick_first below grpc-go's policies. With the real one, it'd take an hour to
// get 100,000 endpoints READY. The stub's picker does the same as the real one's.
type stubChild struct{ cc balancer.ClientConn }

type stubBuilder struct{}

func (stubBuilder) Name() string { return "pick_first" }
func (stubBuilder) Build(cc balancer.ClientConn, _ balancer.BuildOptions) balancer.Balancer {
	return stubChild{cc}
}

func init() { balancer.Register(stubBuilder{}) }

type stubPicker struct{ result balancer.PickResult }

func (p stubPicker) Pick(balancer.PickInfo) (balancer.PickResult, error) { return p.result, nil }

func (c stubChild) UpdateClientConnState(s balancer.ClientConnState) error {
	sc, err := c.cc.NewSubConn(s.ResolverState.Endpoints[0].Addresses, balancer.NewSubConnOptions{
		StateListener: func(balancer.SubConnState) {},
	})
	if err != nil {
		return err
	}
	c.cc.UpdateState(balancer.State{
		ConnectivityState: connectivity.Ready,
		Picker:            stubPicker{balancer.PickResult{SubConn: sc}},
	})
	return nil
}

func (stubChild) ResolverError(error)                                        {}
func (stubChild) UpdateSubConnState(balancer.SubConn, balancer.SubConnState) {}
func (stubChild) ExitIdle()                                                  {}
func (stubChild) Close()                                                     {}

type policy struct {
	balancer.Balancer
	cc    lbtest.ClientConn
	state balancer.ClientConnState
}

func newPolicy(name, config string, endpoints int) *policy {
	p, builder := &policy{}, balancer.Get(name)
	if config != "" {
		parsed, err := builder.(balancer.ConfigParser).ParseConfig(json.RawMessage(config))
		must(err)
		p.state.BalancerConfig = parsed
	}
	for i := range endpoints {
		p.state.ResolverState.Endpoints = append(p.state.ResolverState.Endpoints, resolver.Endpoint{
			Addresses: []resolver.Address{{Addr: fmt.Sprintf("10.%d.%d.%d:443", i>>16, i>>8&255, i&255)}},
		})
	}
	p.Balancer = builder.Build(&p.cc, balancer.BuildOptions{})
	p.update()
	return p
}

func (p *policy) update() { must(p.UpdateClientConnState(p.state)) }

func (p *policy) picker() balancer.Picker { return p.cc.State().Picker }

func (p *policy) contestant(name string) contestant {
	return contestant{name: name, loop: loopOf(p.picker()), close: p.Close}
}

func roundRobin(weights []uint32) contestant {
	return newPolicy(roundrobin.Name, "", len(weights)).contestant("grpc-go round_robin")
}

// weightedRoundRobin is grpc-go's policy, which takes weights from load reports. With a blackout
// period of 0, it uses them at once.
func weightedRoundRobin(weights []uint32) contestant {
	p := newPolicy(weightedroundrobin.Name, `{"blackoutPeriod": "0s"}`, len(weights))
	weightOf := map[string]uint32{}
	for i, e := range p.state.ResolverState.Endpoints {
		weightOf[e.Addresses[0].Addr] = weights[i]
	}
	picker := p.picker()
	for range weights {
		result, err := picker.Pick(balancer.PickInfo{})
		must(err)
		address := result.SubConn.(*lbtest.SubConn).Addresses[0].Addr
		result.Done(balancer.DoneInfo{ServerLoad: &orcapb.OrcaLoadReport{
			RpsFractional: float64(weightOf[address]), ApplicationUtilization: 1,
		}})
	}
	p.update()
	return p.contestant("grpc-go weighted_round_robin")
}

func leastRequest(weights []uint32) contestant {
	p := newPolicy("least_request_experimental", `{"choiceCount": 2}`, len(weights))
	return contestant{name: "grpc-go least_request", loop: callsOf(p.picker()), close: p.Close}
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
