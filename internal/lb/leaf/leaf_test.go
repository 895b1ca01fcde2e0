package leaf

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/resolver"

	_ "github.com/understudy-lb/understudy/policy/pickfirst"
	_ "google.golang.org/grpc/balancer/leastrequest"
	_ "google.golang.org/grpc/balancer/pickfirst"
	_ "google.golang.org/grpc/balancer/ringhash"
	_ "google.golang.org/grpc/balancer/roundrobin"

	"github.com/understudy-lb/understudy/internal/config/options"
	"github.com/understudy-lb/understudy/internal/lb/shell"
	"github.com/understudy-lb/understudy/internal/lb/stateattr"
	"github.com/understudy-lb/understudy/internal/testing/lbtest"
)

type harness struct {
	t      *testing.T
	cc     *lbtest.ClientConn
	policy balancer.Balancer
}

func newHarness(t *testing.T, child string) *harness {
	h := &harness{t: t, cc: &lbtest.ClientConn{Recorder: &lbtest.Recorder{}}}
	h.policy = newBuilder(Name).Build(h.cc, balancer.BuildOptions{})
	h.update(child, "a", "b", "c")
	return h
}

func (h *harness) update(child string, addresses ...string) {
	h.t.Helper()
	name, raw := options.EndpointPolicy(child).Split()
	config, err := newBuilder(Name).(balancer.ConfigParser).ParseConfig([]byte(`{"childPolicy": [{"` + name + `": ` + cmp.Or(string(raw), "{}") + `}]}`))
	if err != nil {
		h.t.Fatal(err)
	}
	var state resolver.State
	for _, a := range addresses {
		state.Endpoints = append(state.Endpoints, resolver.Endpoint{Addresses: []resolver.Address{{Addr: a}}})
	}
	state = stateattr.SetLabels(state, stateattr.Labels{Priority: "p0", Locality: "near"})
	if err := h.policy.UpdateClientConnState(balancer.ClientConnState{ResolverState: state, BalancerConfig: config}); err != nil {
		h.t.Fatal(err)
	}
	synctest.Wait()
}

func (h *harness) report(state connectivity.State, err error, addresses ...string) {
	for _, a := range addresses {
		sc := h.cc.SubConn(a)
		if state == connectivity.Ready {
			sc.Report(connectivity.Connecting, nil)
		}
		sc.Report(state, err)
		if state == connectivity.Ready {
			sc.ReportHealth(state, nil)
		}
		synctest.Wait()
	}
}

func (h *harness) wantMetrics(want map[string]int64) {
	h.t.Helper()
	got := h.cc.Recorder.(*lbtest.Recorder).Export()
	synctest.Wait()
	short := make(map[string]int64)
	for name, n := range got {
		if strings.HasPrefix(name, "grpc.") {
			continue // of the policy's own children; not in each version of grpc-go
		}
		short[strings.Join(strings.Fields(strings.ReplaceAll(name, ":/// p0 near", "")), " ")] = n
	}
	if !maps.Equal(short, want) {
		h.t.Errorf("exported\n%v\nwant\n%v", short, want)
	}
}

// The endpoints of any policy, their states and their calls are exported, and shown on pages.
func TestEndpointsOfAnyPolicyAreShown(t *testing.T) {
	for _, child := range []string{"round_robin", "least_request_experimental"} {
		synctest.Test(t, func(t *testing.T) {
			h := newHarness(t, child)
			defer h.policy.Close()
			stop := h.policy.(shell.Watchable).Watch()
			defer stop()
			h.report(connectivity.Ready, nil, "a", "b")
			h.report(connectivity.TransientFailure, errors.New("tls: bad certificate"), "c")
			h.wantMetrics(map[string]int64{"understudy.endpoints READY": 2, "understudy.endpoints TRANSIENT_FAILURE tls": 1})
			// An endpoint that has failed stays in TRANSIENT_FAILURE while it connects again.
			h.report(connectivity.Idle, nil, "c")
			h.report(connectivity.Connecting, nil, "c")
			h.report(connectivity.TransientFailure, errors.New("refused"), "c")
			h.wantMetrics(map[string]int64{"understudy.endpoints READY": 2, "understudy.endpoints TRANSIENT_FAILURE other": 1})
			for range 10 {
				result, err := h.cc.State().Picker.Pick(balancer.PickInfo{})
				if _, ours := result.SubConn.(*lbtest.SubConn); err != nil || !ours {
					t.Fatalf("picked %T, %v; want a subchannel that the policy above knows", result.SubConn, err)
				}
				result.Done(balancer.DoneInfo{})
			}
			h.wantMetrics(map[string]int64{"understudy.endpoints READY": 2, "understudy.endpoints TRANSIENT_FAILURE other": 1, "understudy.picks": 10})
			time.Sleep(time.Second) // snapshots have a rate
			synctest.Wait()
			snapshot := h.policy.(shell.Watchable).Snapshot()
			calls := uint64(0)
			var states []string
			for _, c := range snapshot.Children {
				started, _, _ := c.Details.(shell.Endpoint).Record.Calls()
				calls += started
				states = append(states, fmt.Sprint(c.Name, " ", c.State))
			}
			if got, want := fmt.Sprint(states), "[a READY b READY c TRANSIENT_FAILURE]"; got != want || calls != 10 || snapshot.Details.(shell.EndpointPolicy).Name != child {
				t.Errorf("the page has %s, %d calls and %v; want %s and 10 calls of %s", got, calls, snapshot.Details, want, child)
			}
			h.cc.SubConn("b").ReportHealth(connectivity.TransientFailure, fmt.Errorf("outlier_detection: %w", shell.ErrEjected))
			synctest.Wait()
			h.update(child, "b", "d")
			h.wantMetrics(map[string]int64{"understudy.endpoints TRANSIENT_FAILURE ejected": 1, "understudy.endpoints IDLE": 1, "understudy.picks": 10})
		})
	}
}

// If a policy does not say why its calls fail, an endpoint does.
func TestFailureOfEndpointIsKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t, "round_robin")
		defer h.policy.Close()
		h.report(connectivity.TransientFailure, errors.New("refused"), "a", "b", "c")
		state := h.cc.State()
		if err := shell.FailureOf(state.Picker); state.ConnectivityState != connectivity.TransientFailure || err == nil || !strings.Contains(err.Error(), "refused") {
			t.Errorf("%v with %v, want TRANSIENT_FAILURE with the error of an endpoint", state.ConnectivityState, err)
		}
	})
}

func TestConfigIsChecked(t *testing.T) {
	for raw, want := range map[string]string{
		`{}`:                              "endpoint_policy: childPolicy: none given",
		`{"childPolicy": [{"none": {}}]}`: `endpoint_policy: childPolicy: none of the policies is registered: "none"`,
	} {
		config, err := newBuilder(Name).(balancer.ConfigParser).ParseConfig([]byte(raw))
		if config != nil || err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, error %v, want %s", raw, config, err, want)
		}
	}
}

// A lazy policy connects to one endpoint at once, and again when it has lost its connections.
func TestLazyPolicyConnects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t, `ring_hash_experimental{"requestHashHeader": "user"}`)
		defer h.policy.Close()
		connecting := func() (n int) {
			for _, sc := range h.cc.LiveSubConns() {
				n += sc.Connects()
			}
			return n
		}
		if connecting() != 1 {
			t.Fatalf("%d endpoints are connected, want one", connecting())
		}
		for _, sc := range h.cc.LiveSubConns() {
			if sc.Connects() == 0 {
				continue
			}
			sc.Report(connectivity.Connecting, nil)
			sc.Report(connectivity.Ready, nil)
			sc.ReportHealth(connectivity.Ready, nil)
			synctest.Wait()
			if got := h.cc.State().ConnectivityState; got != connectivity.Ready {
				t.Fatalf("%v, want READY with one endpoint of three", got)
			}
			sc.Report(connectivity.Idle, nil)
			synctest.Wait()
		}
		if connecting() != 2 {
			t.Errorf("%d attempts to connect, want another one", connecting())
		}
	})
}

// pick_first ignores the health of its endpoint, because it would not leave it for another one.
func TestPickFirstIgnoresHealth(t *testing.T) {
	for _, child := range []string{"pick_first", "understudy_pick_first"} {
		synctest.Test(t, func(t *testing.T) {
			h := newHarness(t, child)
			defer h.policy.Close()
			sc := h.cc.SubConn("a")
			sc.Report(connectivity.Connecting, nil)
			sc.Report(connectivity.Ready, nil)
			synctest.Wait()
			if got := h.cc.State().ConnectivityState; got != connectivity.Ready {
				t.Errorf("%s: %v, want READY", child, got)
			}
		})
	}
}

// uncomparable is a builder as a program may register: comparing two of them panics.
type uncomparable struct {
	balancer.Builder
	_ []string
}

func (uncomparable) Name() string { return "uncomparable" }

func TestBuilderNeedNotBeComparable(t *testing.T) {
	balancer.Register(uncomparable{Builder: balancer.Get("round_robin")})
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t, "uncomparable")
		defer h.policy.Close()
		h.update("uncomparable", "a", "b")
		if h.cc.SubConn("b") == nil {
			t.Error("no subchannel after the second update")
		}
	})
}
