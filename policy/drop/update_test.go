package drop

import (
	"slices"
	"testing"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/config/lbconfig"
	"github.com/understudy-lb/understudy/internal/testing/lbtest"
)

// Some policies read only ResolverState.Addresses. If the resolver does not set this field, the
// policy must fill it with the addresses of the endpoints.
func TestChildReceivesAddresses(t *testing.T) {
	inBubble(t, func(t *testing.T, h *harness) {
		h.update(`[]`)
		if got := h.builder.Get("child").LastUpdate().ResolverState.Addresses; len(got) != 1 || got[0].Addr != "a" {
			t.Errorf("the child was given the addresses %v, want that of the endpoint", got)
		}
		given := []resolver.Address{{Addr: "of the resolver"}}
		h.policy.UpdateClientConnState(balancer.ClientConnState{
			BalancerConfig: &lbconfig.Drop{ChildPolicy: lbconfig.Policy{Builder: h.builder, Config: &lbtest.StubConfig{ID: "child"}}},
			ResolverState:  resolver.State{Addresses: given},
		})
		if got := h.builder.Get("child").LastUpdate().ResolverState.Addresses; !slices.EqualFunc(got, given, resolver.Address.Equal) {
			t.Errorf("the child was given the addresses %v, want %v", got, given)
		}
	})
}
