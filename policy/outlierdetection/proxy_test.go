package outlierdetection

import (
	"testing"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/lb/hierarchy"
)

// Each endpoint is behind a proxy of its own, which gets another address. Its calls must still be
// counted.
func TestProxyGetsAnotherAddress(t *testing.T) {
	inTree(t, "understudy_weighted_round_robin", func(h *tree) {
		update := func(proxies ...string) {
			state := hierarchy.Seal(resolver.State{Endpoints: endpointsOf("a", "b")})
			state.Endpoints = endpointsOf(proxies...)
			if err := h.policy.UpdateClientConnState(balancer.ClientConnState{BalancerConfig: configOf(consecutiveConfig(), h.child), ResolverState: state}); err != nil {
				t.Fatal(err)
			}
			h.cc.CompleteConnects(nil)
		}
		update("proxy1", "b")
		update("proxy2", "b")
		h.want(h.calls(10, "proxy2"), "map[b:5 proxy2:5]")
		h.want(h.calls(10, "proxy2"), "map[b:10]")
	})
}
