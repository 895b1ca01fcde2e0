package hierarchy_test

import (
	"fmt"
	"testing"

	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/lb/hierarchy"
)

// Group must make one allocation for each endpoint. For consecutive endpoints of a group, it must
// make only one further allocation.
func TestGroupAllocations(t *testing.T) {
	const n = 1000
	var endpoints []resolver.Endpoint
	for i := range n {
		e := resolver.Endpoint{Addresses: []resolver.Address{{Addr: fmt.Sprint(i)}}}
		endpoints = append(endpoints, hierarchy.Set(e, fmt.Sprint("p", i/(n/2)), "l"))
	}
	if got := testing.AllocsPerRun(10, func() { hierarchy.Group(endpoints) }); got > n+20 {
		t.Errorf("%v allocations for %d endpoints, want about one per endpoint", got, n)
	}
}
