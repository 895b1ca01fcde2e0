package main

import (
	"fmt"
	"runtime"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"

	_ "github.com/understudy-lb/understudy"
	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/channel/topology"
	"github.com/understudy-lb/understudy/internal/lb/hierarchy"
	"github.com/understudy-lb/understudy/internal/lb/shell"
	"github.com/understudy-lb/understudy/internal/lb/weighted"
	"github.com/understudy-lb/understudy/internal/testing/lbtest"
)

type tree struct {
	cc         lbtest.ClientConn
	policy     balancer.Balancer
	translator topology.Translator
	published  chan struct{}
	complete   chan int // number of endpoints in the last picker that pick has used
	picking    chan struct{}
}

func newTree() *tree {
	t := &tree{published: make(chan struct{}, 1), complete: make(chan int, 1), picking: make(chan struct{})}
	t.cc.OnUpdate(func(balancer.State) {
		select {
		case t.published <- struct{}{}:
		default:
		}
	})
	t.policy = balancer.Get("understudy_priority").Build(&t.cc, balancer.BuildOptions{})
	go t.pick()
	return t
}

func (t *tree) pick() {
	defer close(t.picking)
	for range t.published {
		if p, ok := t.cc.State().Picker.(*weighted.Picker); ok {
			_, _ = p.Pick(balancer.PickInfo{})
			select {
			case <-t.complete:
			default:
			}
			t.complete <- p.Leaves()
		}
	}
}

func (t *tree) close() {
	t.policy.Close()
	close(t.published)
	<-t.picking
}

func answerOf(weights []uint32) *discovery.Answer {
	locality := discovery.Locality{Region: "us-east", Weight: 1}
	for i, weight := range weights {
		locality.Endpoints = append(locality.Endpoints, discovery.Endpoint{
			Addresses: []string{fmt.Sprintf("10.%d.%d.%d:443", i>>16, i>>8&255, i&255)},
			Weight:    weight,
		})
	}
	return &discovery.Answer{Service: "bench", Priorities: []discovery.Priority{{Localities: []discovery.Locality{locality}}}}
}

func (t *tree) stateOf(answer *discovery.Answer) balancer.ClientConnState {
	return t.stateWith(topology.Settings{}, answer)
}

func (t *tree) stateWith(settings topology.Settings, answer *discovery.Answer) balancer.ClientConnState {
	generated, err := t.translator.Translate(answer)
	must(err)
	policies, err := topology.NewPolicies(settings)
	must(err)
	update := policies.Combine(generated)
	state := balancer.ClientConnState{BalancerConfig: update.Config()}
	state.ResolverState.Endpoints = update.Endpoints
	state.ResolverState = hierarchy.Seal(state.ResolverState)
	return state
}

func (t *tree) bringUp(state balancer.ClientConnState) {
	must(t.policy.UpdateClientConnState(state))
	subConns := t.cc.SubConns()
	for _, sc := range subConns {
		sc.Report(connectivity.Connecting, nil)
		sc.Report(connectivity.Ready, nil)
		sc.ReportHealth(connectivity.Ready, nil)
	}
	for <-t.complete < len(subConns) {
	}
}

func generatedTree(weights []uint32) contestant {
	t := newTree()
	t.bringUp(t.stateOf(answerOf(weights)))
	return contestant{name: "generated tree", loop: loopOf(t.cc.State().Picker), close: t.close}
}

// debugTree is for programs that import package debug, in which we count the end of each call.
func debugTree(weights []uint32) contestant {
	t := newTree()
	t.bringUp(t.stateOf(answerOf(weights)))
	stop := t.policy.(shell.Watchable).Watch()
	isWatched := func() bool {
		result, err := t.cc.State().Picker.Pick(balancer.PickInfo{})
		return err == nil && result.Done != nil
	}
	for !isWatched() {
		runtime.Gosched()
	}
	p := t.cc.State().Picker
	loop := func(n int) {
		for range n {
			if result, err := p.Pick(balancer.PickInfo{}); err == nil {
				result.Done(balancer.DoneInfo{})
			}
		}
	}
	return contestant{name: "generated tree with debug", loop: loop, close: func() {
		stop()
		t.close()
	}}
}

func leastRequestTree(name string, weights []uint32, settings topology.Settings) contestant {
	t := newTree()
	settings.EndpointPolicy = "least_request_experimental"
	must(t.policy.UpdateClientConnState(t.stateWith(settings, answerOf(weights))))
	for t.cc.State().ConnectivityState != connectivity.Ready {
		runtime.Gosched()
	}
	return contestant{name: name, loop: callsOf(t.cc.State().Picker), close: t.close}
}
