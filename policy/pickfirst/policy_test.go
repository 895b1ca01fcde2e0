package pickfirst

import (
	"testing"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/testing/lbtest"
)

func endpoints(addresses ...string) resolver.State {
	var s resolver.State
	for _, a := range addresses {
		s.Endpoints = append(s.Endpoints, resolver.Endpoint{Addresses: []resolver.Address{{Addr: a}}})
	}
	return s
}

func build(t *testing.T) (*lbtest.ClientConn, balancer.Balancer) {
	t.Helper()
	cc := &lbtest.ClientConn{}
	p := balancer.Get(Name).Build(cc, balancer.BuildOptions{})
	t.Cleanup(p.Close)
	return cc, p
}

func update(t *testing.T, p balancer.Balancer, s resolver.State) {
	t.Helper()
	if err := p.UpdateClientConnState(balancer.ClientConnState{ResolverState: s}); err != nil {
		t.Fatalf("UpdateClientConnState: %v", err)
	}
}

func wantState(t *testing.T, cc *lbtest.ClientConn, state connectivity.State, pick string) {
	t.Helper()
	got := cc.State()
	if got.ConnectivityState != state || lbtest.Pick(got) != pick {
		t.Errorf("published %v, a pick returns %q; want %v and %q", got.ConnectivityState, lbtest.Pick(got), state, pick)
	}
}

func names(list []resolver.Address) (names []string) {
	for _, a := range list {
		names = append(names, a.Addr)
	}
	return names
}
