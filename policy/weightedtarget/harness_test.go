package weightedtarget

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/serviceconfig"

	"github.com/understudy-lb/understudy/internal/lb/hierarchy"
	"github.com/understudy-lb/understudy/internal/testing/lbtest"
)

type harness struct {
	t       *testing.T
	cc      *lbtest.ClientConn
	policy  balancer.Balancer
	weights map[string]string
	builder *lbtest.StubBuilder
}

func newHarness(t *testing.T) *harness {
	builder := &lbtest.StubBuilder{PolicyName: fmt.Sprintf("weighted_target_stub_%p", t)}
	balancer.Register(builder)
	cc := &lbtest.ClientConn{}
	return &harness{t: t, cc: cc, policy: newBuilder("wt").Build(cc, balancer.BuildOptions{}), builder: builder}
}

func (h *harness) configure(weights map[string]string, options string) serviceconfig.LoadBalancingConfig {
	h.t.Helper()
	var targets []string
	for _, name := range slices.Sorted(maps.Keys(weights)) {
		targets = append(targets, fmt.Sprintf(`%q: {"weight": %s, "childPolicy": [{%q: {"id": %q}}]}`, name, weights[name], h.builder.PolicyName, name))
	}
	c, err := newBuilder(Name).(balancer.ConfigParser).ParseConfig(fmt.Appendf(nil, `{"targets": {%s}%s}`, strings.Join(targets, ","), options))
	if err != nil {
		h.t.Fatal(err)
	}
	return c
}

func (h *harness) update(children, options string) error {
	h.t.Helper()
	h.weights = map[string]string{}
	var state resolver.State
	for _, child := range strings.Fields(children) {
		name, weight, _ := strings.Cut(child, "=")
		h.weights[name] = weight
		endpoint := resolver.Endpoint{Addresses: []resolver.Address{{Addr: "of " + name}}}
		state.Endpoints = append(state.Endpoints, hierarchy.Set(endpoint, name))
	}
	err := h.policy.UpdateClientConnState(balancer.ClientConnState{ResolverState: state, BalancerConfig: h.configure(h.weights, options)})
	synctest.Wait()
	return err
}

func (h *harness) report(name string, state connectivity.State) {
	if stub := h.builder.Get(name); stub != nil {
		var err error
		switch state {
		case connectivity.Idle:
			err = fmt.Errorf("%s", name)
		case connectivity.TransientFailure:
			err = fmt.Errorf("%s", name)
		}
		stub.Report(state, err)
	}
	synctest.Wait()
}

func (h *harness) describe() string {
	state := h.cc.State()
	text := state.ConnectivityState.String()
	counts := map[string]int{}
	n := 0
	for _, weight := range h.weights {
		var w int
		fmt.Sscan(weight, &w)
		n += w
	}
	for range max(n, 1) * 2520 { // a multiple of the length of the picker's sequence, for each set of children in these tests
		answer := strings.TrimPrefix(lbtest.Pick(state), "fail: ")
		if answer == "queue" {
			return text + " queue\n"
		}
		if answer == errNoTargets.Error() {
			return text + " no targets\n"
		}
		if h.weights[answer] == "" {
			return text + " fail: " + answer + "\n"
		}
		counts[answer]++
	}
	smallest := 0
	for name := range counts {
		var w int
		fmt.Sscan(h.weights[name], &w)
		if smallest == 0 || counts[name]/w < smallest {
			smallest = counts[name] / w
		}
	}
	var s strings.Builder
	s.WriteString(text)
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		fmt.Fprintf(&s, " %s*%d", name, (counts[name]+smallest/2)/smallest)
	}
	return s.String() + "\n"
}
