package weightedroundrobin

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/experimental/balancer/weight"
	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/lb/shell"
	"github.com/understudy-lb/understudy/internal/testing/lbtest"
)

type harness struct {
	t      *testing.T
	cc     *lbtest.ClientConn
	policy balancer.Balancer
}

func run(t *testing.T, f func(h *harness)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t)
		defer h.policy.Close()
		f(h)
	})
}

func newHarness(t *testing.T) *harness {
	cc := &lbtest.ClientConn{}
	return &harness{t: t, cc: cc, policy: newBuilder("wrr").Build(cc, balancer.BuildOptions{})}
}

func (h *harness) inner() *policy { return shell.PolicyOf(h.policy).(*policy) }

// endpoint parses "name" or "name:weight".
func endpoint(s string) resolver.Endpoint {
	name, w, weighted := strings.Cut(s, ":")
	e := resolver.Endpoint{Addresses: []resolver.Address{{Addr: name}}}
	if weighted {
		var info weight.EndpointInfo
		if _, err := fmt.Sscan(w, &info.Weight); err != nil {
			panic(err)
		}
		e = weight.Set(e, info)
	}
	return e
}

func endpoints(list string) []resolver.Endpoint {
	var es []resolver.Endpoint
	for _, s := range strings.Fields(list) {
		es = append(es, endpoint(s))
	}
	return es
}

// update sends the policy endpoints such as "a:1 b:2" and a configuration, or none if config is "".
func (h *harness) update(config, list string) {
	h.t.Helper()
	h.mustUpdate(config, resolver.State{Endpoints: endpoints(list)})
}

func (h *harness) mustUpdate(config string, state resolver.State) {
	h.t.Helper()
	if err := h.updateWith(config, state); err != nil {
		h.t.Fatal(err)
	}
}

func (h *harness) updateWith(config string, state resolver.State) error {
	h.t.Helper()
	ccs := balancer.ClientConnState{ResolverState: state}
	if config != "" {
		c, err := newBuilder(Name).(balancer.ConfigParser).ParseConfig([]byte(config))
		if err != nil {
			h.t.Fatal(err)
		}
		ccs.BalancerConfig = c
	}
	err := h.policy.UpdateClientConnState(ccs)
	synctest.Wait()
	return err
}

// report makes subchannels report a state. A subchannel that becomes READY first reports CONNECTING,
// and then, after READY, that its endpoint is healthy.
func (h *harness) report(state connectivity.State, names ...string) {
	h.t.Helper()
	for _, name := range names {
		sc := h.cc.SubConn(name)
		if sc == nil {
			h.t.Fatalf("no subchannel to %s", name)
		}
		switch state {
		case connectivity.TransientFailure:
			sc.Report(state, errors.New(name+" is down"))
		case connectivity.Ready:
			sc.Report(connectivity.Connecting, nil)
			sc.Report(state, nil)
			sc.ReportHealth(state, nil)
		default:
			sc.Report(state, nil)
		}
	}
	synctest.Wait()
}

func (h *harness) ready(names ...string) {
	h.t.Helper()
	h.report(connectivity.Ready, names...)
}

func (h *harness) picks(n int) string {
	var b strings.Builder
	state := h.cc.State()
	for range n {
		b.WriteString(lbtest.Pick(state))
	}
	return b.String()
}

func (h *harness) wantPicks(want string) {
	h.t.Helper()
	if got := h.picks(len(want)); got != want {
		h.t.Errorf("picks = %s, want %s", got, want)
	}
}

func (h *harness) wantPick(want string) {
	h.t.Helper()
	if got := lbtest.Pick(h.cc.State()); got != want {
		h.t.Errorf("pick = %s, want %s", got, want)
	}
}

// wantState checks the published state and a pick. An error is compared by its end, because the
// endpoint's pick_first adds a prefix.
func (h *harness) wantState(state connectivity.State, pick string) {
	h.t.Helper()
	got := h.cc.State()
	picked := lbtest.Pick(got)
	if message, isError := strings.CutPrefix(pick, "fail: "); isError {
		if strings.HasPrefix(picked, "fail: ") && strings.HasSuffix(picked, message) {
			pick = picked
		}
	}
	if got.ConnectivityState != state || picked != pick {
		h.t.Errorf("state = %v, pick = %s; want %v, %s", got.ConnectivityState, picked, state, pick)
	}
}
