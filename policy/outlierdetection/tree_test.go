package outlierdetection

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/balancer/roundrobin"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/resolver"

	core "github.com/understudy-lb/understudy/internal/core/outlierdetection"
	"github.com/understudy-lb/understudy/internal/lb/weighted"
	"github.com/understudy-lb/understudy/internal/testing/lbtest"
	"github.com/understudy-lb/understudy/internal/testing/outlierscenario"

	_ "github.com/understudy-lb/understudy/policy/drop"
	_ "github.com/understudy-lb/understudy/policy/priority"
	_ "github.com/understudy-lb/understudy/policy/weightedroundrobin"
	_ "github.com/understudy-lb/understudy/policy/weightedtarget"
)

type tree struct {
	t      *testing.T
	cc     *lbtest.ClientConn
	policy balancer.Balancer
	child  string
}

func inTree(t *testing.T, child string, f func(h *tree)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		h := newTree(t, child)
		defer h.policy.Close()
		f(h)
	})
}

func newTree(t *testing.T, child string) *tree {
	h := &tree{t: t, cc: &lbtest.ClientConn{}, child: child}
	h.policy = newBuilder(Name).Build(h.cc, balancer.BuildOptions{})
	return h
}

func consecutiveConfig() core.Config {
	config := outlierscenario.Default()
	config.ConsecutiveFailuresEjection = &core.ConsecutiveFailuresEjection{Failures: 5, EnforcementPercentage: 100}
	config.MaxEjectionPercent = 50
	return config
}

func (h *tree) update(config core.Config, endpoints ...resolver.Endpoint) {
	h.t.Helper()
	c := configOf(config, h.child)
	if err := h.policy.UpdateClientConnState(balancer.ClientConnState{BalancerConfig: c, ResolverState: stateOf(config, endpoints)}); err != nil {
		h.t.Fatal(err)
	}
	h.cc.CompleteConnects(nil)
}

func (h *tree) calls(n int, bad string) map[string]int {
	h.t.Helper()
	counts := map[string]int{}
	for range n {
		result, err := h.cc.State().Picker.Pick(balancer.PickInfo{})
		if err != nil {
			h.t.Fatal(err)
		}
		name := result.SubConn.(*lbtest.SubConn).Addresses[0].Addr
		counts[name]++
		info := balancer.DoneInfo{BytesSent: true, BytesReceived: true}
		if name == bad {
			info = doneInfo(codes.Unavailable, true, false)
		}
		if result.Done != nil {
			result.Done(info)
		}
		synctest.Wait()
	}
	return counts
}

func (h *tree) want(got map[string]int, want string) {
	h.t.Helper()
	if fmt.Sprint(got) != want {
		h.t.Errorf("calls went to %v, want %s", got, want)
	}
}

func TestFailingEndpointIsEjected(t *testing.T) {
	for _, child := range []string{"understudy_weighted_round_robin", roundrobin.Name} {
		t.Run(child, func(t *testing.T) {
			inTree(t, child, func(h *tree) {
				h.update(consecutiveConfig(), endpointsOf("a", "b")...)
				h.want(h.calls(10, ""), "map[a:5 b:5]")
				h.want(h.calls(10, "a"), "map[a:5 b:5]")
				h.want(h.calls(10, "a"), "map[b:10]")
				if len(h.cc.SubConns()) != 2 || len(h.cc.LiveSubConns()) != 2 {
					t.Errorf("%v of %v are live, want both connections kept", h.cc.LiveSubConns(), h.cc.SubConns())
				}
				time.Sleep(40 * time.Second)
				synctest.Wait()
				h.want(h.calls(10, ""), "map[a:5 b:5]")
			})
		})
	}
}

// Without ejection algorithms, the policy must publish the child's own picker. No connection may be
// made when outlier detection is turned on or off.
func TestPickerIsUnchangedWithoutAlgorithm(t *testing.T) {
	inTree(t, "understudy_weighted_round_robin", func(h *tree) {
		wantChildPicker := func(counts bool) {
			t.Helper()
			state := h.cc.State()
			if _, ok := state.Picker.(*weighted.Picker); !ok {
				t.Errorf("published a %T, want the child's own picker", state.Picker)
			}
			if result, err := state.Picker.Pick(balancer.PickInfo{}); err != nil || (result.Done != nil) != counts {
				t.Errorf("a pick has a Done: %v, %v; want %v", result.Done != nil, err, counts)
			}
		}
		noOp := outlierscenario.Default()
		h.update(noOp, endpointsOf("a", "b")...)
		wantChildPicker(false)
		before := len(h.cc.SubConns())
		h.update(consecutiveConfig(), endpointsOf("a", "b")...)
		wantChildPicker(true)
		h.want(h.calls(20, "a"), "map[a:5 b:15]")
		h.update(noOp, endpointsOf("a", "b")...)
		wantChildPicker(false)
		h.want(h.calls(10, "a"), "map[a:5 b:5]")
		if now := len(h.cc.SubConns()); now != before {
			t.Errorf("turning detection on and off made %d connections", now-before)
		}
	})
}

// All addresses of an endpoint must be ejected together (gRFC A61).
func TestEndpointWithSeveralAddresses(t *testing.T) {
	inTree(t, "understudy_weighted_round_robin", func(h *tree) {
		two := resolver.Endpoint{Addresses: []resolver.Address{{Addr: "a1"}, {Addr: "a2"}}}
		h.update(consecutiveConfig(), two, endpointsOf("b")[0])
		h.want(h.calls(20, "a1"), "map[a1:5 b:15]")
		h.cc.SubConn("a1").Report(connectivity.Idle, nil)
		synctest.Wait()
		h.cc.SubConn("a1").Report(connectivity.TransientFailure, fmt.Errorf("refused"))
		synctest.Wait()
		sc := h.cc.SubConn("a2")
		sc.Report(connectivity.Ready, nil)
		synctest.Wait()
		sc.ReportHealth(connectivity.Ready, nil)
		synctest.Wait()
		h.want(h.calls(10, ""), "map[b:10]")
		time.Sleep(40 * time.Second)
		synctest.Wait()
		h.want(h.calls(10, ""), "map[a2:5 b:5]")
	})
}

func TestNewConnectionOfEjectedEndpoint(t *testing.T) {
	inTree(t, "understudy_weighted_round_robin", func(h *tree) {
		h.update(consecutiveConfig(), endpointsOf("a", "b")...)
		h.want(h.calls(20, "a"), "map[a:5 b:15]")
		time.Sleep(time.Second) // a connection that lasts less than a second would count as a failure
		h.cc.SubConn("a").Report(connectivity.Idle, nil)
		synctest.Wait()
		h.update(consecutiveConfig(), endpointsOf("a", "b")...)
		h.want(h.calls(10, ""), "map[b:10]")
		time.Sleep(40 * time.Second)
		synctest.Wait()
		h.want(h.calls(10, ""), "map[a:5 b:5]")
	})
}

func TestEjectedEndpointIsRemoved(t *testing.T) {
	inTree(t, "understudy_weighted_round_robin", func(h *tree) {
		h.update(consecutiveConfig(), endpointsOf("a", "b", "c")...)
		h.want(h.calls(21, "a"), "map[a:5 b:8 c:8]")
		h.update(consecutiveConfig(), endpointsOf("b", "c")...)
		h.update(consecutiveConfig(), endpointsOf("a", "b", "c")...)
		h.want(h.calls(9, ""), "map[a:3 b:3 c:3]")
	})
}
