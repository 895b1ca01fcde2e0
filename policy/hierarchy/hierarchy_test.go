package hierarchy_test

import (
	"slices"
	"testing"

	"google.golang.org/grpc/resolver"

	internal "github.com/understudy-lb/understudy/internal/lb/hierarchy"
	"github.com/understudy-lb/understudy/policy/hierarchy"
)

func TestUnsealRestoresPaths(t *testing.T) {
	endpoint := resolver.Endpoint{Addresses: []resolver.Address{{Addr: "192.0.2.1:443"}}}
	state := hierarchy.Seal(resolver.State{Endpoints: []resolver.Endpoint{hierarchy.Set(endpoint, "p0", "a")}})
	state.Endpoints = []resolver.Endpoint{{Addresses: []resolver.Address{{Addr: "proxy:8080"}}}}

	groups := hierarchy.Group(internal.Unseal(state).Endpoints)
	if len(groups["p0"]) != 1 || !slices.Equal(hierarchy.Path(groups["p0"][0]), []string{"a"}) {
		t.Errorf("groups = %v, want one endpoint in p0 with path [a]", groups)
	}
}

func TestSealCopiesEndpoints(t *testing.T) {
	endpoint := resolver.Endpoint{Addresses: []resolver.Address{{Addr: "192.0.2.1:443"}}}
	given := []resolver.Endpoint{hierarchy.Set(endpoint, "p0")}
	state := hierarchy.Seal(resolver.State{Endpoints: given})
	given[0] = hierarchy.Set(endpoint, "changed by the caller")
	state.Endpoints = []resolver.Endpoint{endpoint}
	if got := hierarchy.Path(internal.Unseal(state).Endpoints[0]); !slices.Equal(got, []string{"p0"}) {
		t.Errorf("path = %q, want [p0]", got)
	}
}
