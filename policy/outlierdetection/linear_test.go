package outlierdetection

import (
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/attributes"
	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/resolver"

	core "github.com/understudy-lb/understudy/internal/core/outlierdetection"
	"github.com/understudy-lb/understudy/internal/lb/hierarchy"
	"github.com/understudy-lb/understudy/internal/testing/lbtest"
	"github.com/understudy-lb/understudy/internal/testing/outlierscenario"
)

type countedValue struct {
	target      string
	comparisons *atomic.Int64
}

func (c *countedValue) Equal(other any) bool {
	c.comparisons.Add(1)
	v, ok := other.(*countedValue)
	return ok && v.target == c.target
}

func (c *countedValue) String() string { return c.target }

// Behind a proxy, all endpoints have the same address and differ only in its attributes. An update
// must not compare each endpoint with all other endpoints.
func TestUpdateBehindProxyIsLinear(t *testing.T) {
	const n = 400
	inTree(t, "understudy_weighted_round_robin", func(h *tree) {
		times := &atomic.Int64{}
		update := func(from int, config core.Config) {
			var origin, proxied []resolver.Endpoint
			for i := range n {
				target := fmt.Sprint("backend", from+i)
				origin = append(origin, endpointsOf(target)...)
				address := resolver.Address{Addr: "proxy", Attributes: attributes.New("to", &countedValue{target, times})}
				proxied = append(proxied, resolver.Endpoint{Addresses: []resolver.Address{address}})
			}
			state := hierarchy.Seal(resolver.State{Endpoints: origin})
			state.Endpoints = proxied
			if err := h.policy.UpdateClientConnState(balancer.ClientConnState{BalancerConfig: configOf(config, h.child), ResolverState: state}); err != nil {
				t.Fatal(err)
			}
			h.cc.CompleteConnects(nil)
		}
		for _, step := range []struct {
			what   string
			from   int
			config core.Config
		}{
			{"new", 0, consecutiveConfig()}, {"the same", 0, consecutiveConfig()}, {"detection turned off", 0, outlierscenario.Default()},
			{"detection turned on", 0, consecutiveConfig()}, {"half of them replaced", n / 2, consecutiveConfig()}, {"all replaced", 2 * n, consecutiveConfig()},
		} {
			times.Store(0)
			update(step.from, step.config)
			if got := times.Load(); got > 12*n {
				t.Errorf("%s: %d attributes were compared for %d endpoints", step.what, got, n)
			}
		}
		bad := &countedValue{fmt.Sprint("backend", 2*n), times}
		failed := 0
		for range 7 * n {
			result, err := h.cc.State().Picker.Pick(balancer.PickInfo{})
			if err != nil {
				t.Fatal(err)
			}
			info := endings["ok"]
			if bad.Equal(result.SubConn.(*lbtest.SubConn).Addresses[0].Attributes.Value("to")) {
				info = endings["lost"]
				failed++
			}
			result.Done(info)
			time.Sleep(time.Millisecond)
			synctest.Wait()
		}
		if failed != 5 {
			t.Errorf("%d calls went to the bad endpoint, want 5 before it is ejected", failed)
		}
	})
}
