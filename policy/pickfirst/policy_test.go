package pickfirst

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

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

func TestConnectsToFirstWorkingAddress(t *testing.T) {
	cc, p := build(t)
	update(t, p, endpoints("a", "b"))
	wantState(t, cc, connectivity.Connecting, "queue")
	cc.SubConn("a").Report(connectivity.Connecting, nil)
	cc.SubConn("a").Report(connectivity.TransientFailure, errors.New("refused"))
	wantState(t, cc, connectivity.Connecting, "queue")
	cc.SubConn("b").Report(connectivity.Connecting, nil)
	cc.SubConn("b").Report(connectivity.Ready, nil)
	wantState(t, cc, connectivity.Ready, "b")
	if live := cc.LiveSubConns(); len(live) != 1 {
		t.Errorf("%v are open, want only b", live)
	}
}

func TestAllAddressesFail(t *testing.T) {
	cc, p := build(t)
	update(t, p, endpoints("a", "b"))
	cc.SubConn("a").Report(connectivity.TransientFailure, errors.New("refused"))
	cc.SubConn("b").Report(connectivity.TransientFailure, errors.New("no route"))
	wantState(t, cc, connectivity.TransientFailure, "fail: all 2 addresses failed, the last with: no route")
	if n := cc.ResolveNows(); n != 1 {
		t.Errorf("%d re-resolutions, want 1", n)
	}
}

func TestPickFromIdleConnects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cc, p := build(t)
		update(t, p, endpoints("a"))
		cc.SubConn("a").Report(connectivity.Ready, nil)
		advance(time.Second)
		cc.SubConn("a").Report(connectivity.Idle, nil)
		idle := cc.State()
		wantState(t, cc, connectivity.Idle, "queue")
		synctest.Wait()
		wantState(t, cc, connectivity.Connecting, "queue")
		lbtest.Pick(idle)
		synctest.Wait()
		if n := cc.SubConn("a").Connects(); n != 2 {
			t.Errorf("connected %d times, want twice", n)
		}
	})
}

func TestNextAttemptAfter250ms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cc, p := build(t)
		update(t, p, endpoints("a", "b"))
		<-time.After(250*time.Millisecond - 1)
		synctest.Wait()
		if cc.SubConn("b") != nil {
			t.Error("b was tried before 250 ms")
		}
		<-time.After(1)
		synctest.Wait()
		if b := cc.SubConn("b"); b == nil || b.Connects() != 1 {
			t.Error("b was not tried after 250 ms")
		}
	})
}

func TestDuplicatesAreTriedOnce(t *testing.T) {
	cc, p := build(t)
	state := endpoints("a", "b")
	state.Endpoints[1].Addresses = append(state.Endpoints[1].Addresses, resolver.Address{Addr: "a"}, resolver.Address{Addr: "b"})
	update(t, p, state)
	cc.SubConn("a").Report(connectivity.TransientFailure, errors.New("refused"))
	cc.SubConn("b").Report(connectivity.TransientFailure, errors.New("refused"))
	wantState(t, cc, connectivity.TransientFailure, "fail: all 2 addresses failed, the last with: refused")
}

func names(list []resolver.Address) (names []string) {
	for _, a := range list {
		names = append(names, a.Addr)
	}
	return names
}
