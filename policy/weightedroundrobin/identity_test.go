package weightedroundrobin

import (
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"google.golang.org/grpc/attributes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/experimental/balancer/weight"
	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/lb/hierarchy"
	"github.com/understudy-lb/understudy/internal/testing/testlog"
)

func addresses(list ...string) resolver.Endpoint {
	var e resolver.Endpoint
	for i := 0; i < len(list); i += 2 {
		e.Addresses = append(e.Addresses, resolver.Address{Addr: list[i], ServerName: list[i+1]})
	}
	return e
}

func TestReorderedAddressesKeepConnection(t *testing.T) {
	run(t, func(h *harness) {
		reordered := addresses("b", "y", "a", "x")
		reordered.Addresses[0].Attributes = attributes.New("k", "v")
		for _, e := range []resolver.Endpoint{addresses("a", "x", "b", "y"), reordered} {
			h.mustUpdate("", resolver.State{Endpoints: []resolver.Endpoint{e}})
			if len(h.cc.SubConns()) == 1 {
				h.ready("a")
			}
		}
		if n := len(h.cc.SubConns()); n != 1 {
			t.Errorf("%d subchannels were made, want 1", n)
		}
		h.wantState(connectivity.Ready, "a")
	})
}

// Behind a proxy, all endpoints have the proxy's address. The policy must use the endpoints' own
// addresses and weights, which are in the copy that hierarchy.Seal made.
func TestEndpointsBehindProxy(t *testing.T) {
	run(t, func(h *harness) {
		state := hierarchy.Seal(resolver.State{Endpoints: []resolver.Endpoint{
			hierarchy.Set(endpoint("a:1")), hierarchy.Set(endpoint("b:2")),
		}})
		state.Endpoints = []resolver.Endpoint{endpoint("proxy"), endpoint("proxy")}
		h.mustUpdate("", state)
		subConns := h.cc.SubConns()
		if len(subConns) != 2 {
			t.Fatalf("%d subchannels, want one for each endpoint", len(subConns))
		}
		for _, sc := range subConns {
			sc.Report(connectivity.Ready, nil)
			sc.ReportHealth(connectivity.Ready, nil)
		}
		synctest.Wait()
		if order := h.inner().core.Order(); order[0].Weight() != 1 || order[1].Weight() != 2 {
			t.Errorf("picker %v is not one of two endpoints with weights 1 and 2", h.cc.State().Picker)
		}
	})
}

func TestDuplicateEndpoint(t *testing.T) {
	run(t, func(h *harness) {
		h.update("", "a:1 b:1 a:2")
		h.ready("a", "b")
		if n := len(h.cc.SubConns()); n != 2 {
			t.Errorf("%d subchannels, want 2", n)
		}
		h.wantPicks("aaabaaab")
		h.update("", "b:1 a:1")
		h.wantPicks("baba")
	})
}

func TestLargeWeightsAreScaledDown(t *testing.T) {
	run(t, func(h *harness) {
		h.update("", "a:4294967295 b:4294967295 b:9 c:1 d:2147483647")
		h.ready("a", "b", "c", "d")
		order := h.inner().core.Order()
		var sum uint64
		for _, c := range order {
			sum += uint64(c.Weight())
		}
		if sum > math.MaxUint32 || sum < math.MaxUint32-8 {
			t.Errorf("weights sum to %d, want nearly %d", sum, uint32(math.MaxUint32))
		}
		if order[2].Weight() != 1 {
			t.Errorf("the smallest weight became %d, want 1", order[2].Weight())
		}
		if got := h.picks(5000); strings.Count(got, "a") != 2000 || strings.Count(got, "b") != 2000 || strings.Count(got, "d") != 1000 {
			t.Errorf("picks are %d a, %d b, %d d of 5000; want 2:2:1", strings.Count(got, "a"), strings.Count(got, "b"), strings.Count(got, "d"))
		}
	})
}

var logged = testlog.CaptureWarnings()

func TestWarningsAreLoggedOnce(t *testing.T) {
	logged.Take()
	run(t, func(h *harness) {
		es := append(endpoints("a:4294967295 b a c b"), resolver.Endpoint{}, resolver.Endpoint{})
		for range 2 {
			h.mustUpdate("", resolver.State{Endpoints: es})
		}
	})
	var got []string
	for line := range strings.Lines(logged.Take()) {
		_, text, _ := strings.Cut(line, "weighted_round_robin: ")
		got = append(got, strings.TrimSpace(text))
	}
	want := []string{
		`endpoint "a" is given twice; its weights are added`,
		`an endpoint without an address is ignored`,
		`the weights of 3 endpoints sum to 4294967298, more than 4294967295, and are scaled down`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("logged %q\nwant %q", got, want)
	}
}

func TestEqualExceptWeight(t *testing.T) {
	e := endpoint("a:1")
	withAttribute := func(value any) resolver.Endpoint {
		return weight.Set(resolver.Endpoint{Addresses: e.Addresses, Attributes: attributes.New("k", value)}, weight.EndpointInfo{Weight: 1})
	}
	incomparable := attributes.New("k", []string{"x"})
	tests := []struct {
		name string
		a, b resolver.Endpoint
		want bool
	}{
		{"the same", e, e, true},
		{"another weight", e, endpoint("a:2"), true},
		{"another value", withAttribute("v"), withAttribute("w"), false},
		{"the same value", withAttribute("v"), withAttribute("v"), true},
		{"another address", e, endpoint("b:1"), false},
		{"values that cannot be compared", withAttribute([]string{"x"}), withAttribute([]string{"x"}), false},
		{"addresses that cannot be compared",
			resolver.Endpoint{Addresses: []resolver.Address{{Addr: "a", Attributes: incomparable}}},
			resolver.Endpoint{Addresses: []resolver.Address{{Addr: "a", Attributes: attributes.New("k", []string{"x"})}}}, false},
	}
	for _, test := range tests {
		if got := equalExceptWeight(test.a, test.b); got != test.want {
			t.Errorf("%s: same = %v, want %v", test.name, got, test.want)
		}
	}
}
