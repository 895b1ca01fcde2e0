package pickfirst

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/experimental/balancer/weight"
	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/testing/lbtest"
)

// endpoints returns a state with one endpoint for each address.
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

func want(t *testing.T, cc *lbtest.ClientConn, state connectivity.State, pick string) {
	t.Helper()
	got := cc.State()
	if got.ConnectivityState != state || lbtest.Pick(got) != pick {
		t.Errorf("published %v, a pick gives %q; want %v and %q", got.ConnectivityState, lbtest.Pick(got), state, pick)
	}
}

func TestConnectsToTheFirstThatWorks(t *testing.T) {
	cc, p := build(t)
	update(t, p, endpoints("a", "b"))
	want(t, cc, connectivity.Connecting, "queue")
	cc.SubConn("a").Report(connectivity.Connecting, nil)
	cc.SubConn("a").Report(connectivity.TransientFailure, errors.New("refused"))
	want(t, cc, connectivity.Connecting, "queue")
	cc.SubConn("b").Report(connectivity.Connecting, nil)
	cc.SubConn("b").Report(connectivity.Ready, nil)
	want(t, cc, connectivity.Ready, "b")
	if live := cc.Live(); len(live) != 1 {
		t.Errorf("%v are open, want only b", live)
	}
}

func TestAllFail(t *testing.T) {
	cc, p := build(t)
	update(t, p, endpoints("a", "b"))
	cc.SubConn("a").Report(connectivity.TransientFailure, errors.New("refused"))
	cc.SubConn("b").Report(connectivity.TransientFailure, errors.New("no route"))
	want(t, cc, connectivity.TransientFailure, "fail: all 2 addresses failed, the last with: no route")
	if n := cc.ResolveNows(); n != 1 {
		t.Errorf("re-resolution was asked for %d times, want once", n)
	}
}

func TestPickFromIdleConnects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cc, p := build(t)
		update(t, p, endpoints("a"))
		cc.SubConn("a").Report(connectivity.Ready, nil)
		cc.SubConn("a").Report(connectivity.Idle, nil)
		idle := cc.State()
		want(t, cc, connectivity.Idle, "queue")
		synctest.Wait()
		want(t, cc, connectivity.Connecting, "queue")
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
			t.Error("b was tried before its time")
		}
		<-time.After(1)
		synctest.Wait()
		if b := cc.SubConn("b"); b == nil || b.Connects() != 1 {
			t.Error("b was not tried after 250 ms")
		}
	})
}

// The variable that once guarded shuffling does not count any more.
func TestEnvironmentDoesNotMatter(t *testing.T) {
	for _, value := range []string{"", "true", "false"} {
		t.Setenv("GRPC_EXPERIMENTAL_PICKFIRST_LB_CONFIG", value)
		if first := firstTried(t, endpoints("a", "b", "c"), `{}`); len(first) != 1 {
			t.Errorf("%q: %v were tried first, without shuffling", value, first)
		}
		if first := firstTried(t, endpoints("a", "b", "c"), `{"shuffleAddressList": true}`); len(first) != 3 {
			t.Errorf("%q: only %v were ever tried first", value, first)
		}
	}
}

// firstTried returns which addresses two hundred policies try first.
func firstTried(t *testing.T, s resolver.State, raw string) map[string]bool {
	t.Helper()
	config, err := NewBuilder("x").(balancer.ConfigParser).ParseConfig([]byte(raw))
	if err != nil {
		t.Fatal(err)
	}
	first := map[string]bool{}
	for range 200 {
		cc, p := build(t)
		if err := p.UpdateClientConnState(balancer.ClientConnState{ResolverState: s, BalancerConfig: config}); err != nil {
			t.Fatal(err)
		}
		first[cc.SubConns()[0].Addresses[0].Addr] = true
	}
	return first
}

func TestShuffleSpreadsAndKeepsTheStatesSlices(t *testing.T) {
	for _, s := range []resolver.State{
		endpoints("a", "b", "c"),
		{Addresses: []resolver.Address{{Addr: "a"}, {Addr: "b"}, {Addr: "c"}}},
	} {
		before := names(addressesOf(s, false))
		if first := firstTried(t, s, `{"shuffleAddressList": true}`); len(first) != 3 {
			t.Errorf("only %v were ever tried first", first)
		}
		if after := names(addressesOf(s, false)); !slices.Equal(before, after) {
			t.Errorf("the state's order changed from %v to %v", before, after)
		}
	}
}

func TestDuplicatesAreTriedOnce(t *testing.T) {
	cc, p := build(t)
	twice := endpoints("a", "b")
	twice.Endpoints[1].Addresses = append(twice.Endpoints[1].Addresses, resolver.Address{Addr: "a"}, resolver.Address{Addr: "b"})
	update(t, p, twice)
	cc.SubConn("a").Report(connectivity.TransientFailure, errors.New("refused"))
	cc.SubConn("b").Report(connectivity.TransientFailure, errors.New("refused"))
	want(t, cc, connectivity.TransientFailure, "fail: all 2 addresses failed, the last with: refused")
}

// A113: endpoints with more weight are tried first more often, in proportion, and the
// addresses of one endpoint stay together in their order.
func TestShuffleFollowsTheWeights(t *testing.T) {
	s := endpoints("a", "b", "c")
	for i, w := range []uint32{1, 3, 6} {
		s.Endpoints[i] = weight.Set(s.Endpoints[i], weight.EndpointInfo{Weight: w})
		s.Endpoints[i].Addresses = append(s.Endpoints[i].Addresses, resolver.Address{Addr: s.Endpoints[i].Addresses[0].Addr + "2"})
	}
	const draws = 20_000
	counts := map[string]int{}
	for range draws {
		list := names(addressesOf(s, true))
		counts[list[0]]++
		for i := 0; i < len(list); i += 2 {
			if list[i+1] != list[i]+"2" {
				t.Fatalf("the order is %v, want each endpoint's addresses together", list)
			}
		}
	}
	// Past 30 with 2 degrees of freedom: three in ten million runs.
	var chi2 float64
	for name, share := range map[string]float64{"a": 0.1, "b": 0.3, "c": 0.6} {
		d := float64(counts[name]) - share*draws
		chi2 += d * d / (share * draws)
	}
	if chi2 > 30 {
		t.Errorf("first were %v, chi-squared %.1f, want shares of 1, 3 and 6", counts, chi2)
	}
}

func names(list []resolver.Address) (names []string) {
	for _, a := range list {
		names = append(names, a.Addr)
	}
	return names
}
