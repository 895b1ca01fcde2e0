package shell

import (
	"strings"
	"testing"

	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/lb/hierarchy"
)

// WithEndpoints must allocate only once, for any number of endpoints, because updates of 10,000
// endpoints call it.
func TestWithEndpointsAllocatesOnce(t *testing.T) {
	endpoints := make([]resolver.Endpoint, 1000)
	for i := range endpoints {
		endpoints[i].Addresses = []resolver.Address{{Addr: "a"}, {Addr: "b"}}
	}
	var got resolver.State
	if n := testing.AllocsPerRun(10, func() { got = WithEndpoints(resolver.State{}, endpoints) }); n != 1 {
		t.Errorf("%v allocations, want 1", n)
	}
	if len(got.Endpoints) != 1000 || len(got.Addresses) != 2000 || got.Addresses[1999].Addr != "b" {
		t.Errorf("%d endpoints with %d addresses", len(got.Endpoints), len(got.Addresses))
	}
}

func TestOnlyOmitsOtherEndpoints(t *testing.T) {
	all := WithEndpoints(resolver.State{}, []resolver.Endpoint{{Addresses: []resolver.Address{{Addr: "a"}}}, {Addresses: []resolver.Address{{Addr: "b"}}}})
	got := WithOnlyEndpoints(all.Endpoints[1:], all)
	if len(got.Endpoints) != 1 || got.Endpoints[0].Addresses[0].Addr != "b" || got.Addresses != nil || len(all.Endpoints) != 2 {
		t.Errorf("%v with the addresses %v of %v", got.Endpoints, got.Addresses, all.Endpoints)
	}
}

// firstUnassigned must describe the first endpoint that has no path, or whose path begins with an
// unknown child.
func TestFirstUnassigned(t *testing.T) {
	endpointAt := func(address string, path ...string) resolver.Endpoint {
		return hierarchy.Set(resolver.Endpoint{Addresses: []resolver.Address{{Addr: address}}}, path...)
	}
	known := func(child string) bool { return child == "known" }
	for want, endpoints := range map[string][]resolver.Endpoint{
		`"b:1"`: {endpointAt("a:1", "known"), endpointAt("b:1"), endpointAt("c:1", "unknown")},
		`"c:1"`: {endpointAt("a:1", "known", "x"), endpointAt("c:1", "unknown", "known"), endpointAt("b:1")},
	} {
		if got := firstUnassigned(endpoints, known); !strings.Contains(got, want) {
			t.Errorf("the first stray is %s, want %s", got, want)
		}
	}
	if got := firstUnassigned([]resolver.Endpoint{endpointAt("a:1", "known")}, known); got != "" {
		t.Errorf("without strays, %s", got)
	}
}
