package shell

import (
	"testing"

	"google.golang.org/grpc/resolver"
)

// WithEndpoints must allocate only once, for any number of endpoints. An update of 10,000 endpoints
// calls it twice.
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
