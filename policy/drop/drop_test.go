package drop

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/synctest"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/status"

	"github.com/understudy-lb/understudy/internal/config/lbconfig"
	"github.com/understudy-lb/understudy/internal/testing/lbtest"
)

type harness struct {
	t        *testing.T
	cc       *lbtest.ClientConn
	recorder *lbtest.Recorder
	policy   balancer.Balancer
	builder  *lbtest.StubBuilder
}

func inBubble(t *testing.T, f func(t *testing.T, h *harness)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		builder := &lbtest.StubBuilder{PolicyName: fmt.Sprintf("drop_stub_%p", t)}
		balancer.Register(builder)
		recorder := &lbtest.Recorder{}
		cc := &lbtest.ClientConn{Recorder: recorder}
		h := &harness{t: t, cc: cc, recorder: recorder, builder: builder, policy: newBuilder("drop").Build(cc, balancer.BuildOptions{})}
		defer h.policy.Close()
		f(t, h)
	})
}

func (h *harness) update(categories string) error {
	h.t.Helper()
	c, err := parseConfig([]byte(fmt.Sprintf(`{"dropCategories": %s, "childPolicy": [{%q: {"id": "child"}}]}`, categories, h.builder.PolicyName)))
	if err != nil {
		h.t.Fatal(err)
	}
	err = h.policy.UpdateClientConnState(balancer.ClientConnState{
		BalancerConfig: c,
		ResolverState:  resolver.State{Endpoints: []resolver.Endpoint{{Addresses: []resolver.Address{{Addr: "a"}}}}},
	})
	synctest.Wait()
	return err
}

func (h *harness) report(state connectivity.State, err error) {
	h.builder.Get("child").Report(state, err)
	synctest.Wait()
}

func TestDropsByCategoryInOrder(t *testing.T) {
	inBubble(t, func(t *testing.T, h *harness) {
		h.update(`[{"category": "lb", "requestsPerMillion": 200000}, {"category": "throttle", "requestsPerMillion": 500000}]`)
		h.report(connectivity.Ready, nil)
		const n = 100_000
		got := map[string]float64{}
		for range n {
			_, err := h.cc.State().Picker.Pick(balancer.PickInfo{})
			if s, ok := status.FromError(err); ok {
				if s.Code() != codes.Unavailable {
					t.Fatalf("a dropped call ends with %v, want UNAVAILABLE", s.Code())
				}
				got[s.Message()]++
			} else {
				got["passed"]++
			}
		}
		for outcome, share := range map[string]float64{
			`call dropped by configuration, category "lb"`:       0.2,
			`call dropped by configuration, category "throttle"`: 0.4,
			"passed": 0.4,
		} {
			// The limit is five standard deviations, so the test fails by chance once in two million runs.
			if diff := math.Abs(got[outcome]/n - share); diff > 5*math.Sqrt(share*(1-share)/n) {
				t.Errorf("%s: %.4f of the calls, want %.2f", outcome, got[outcome]/n, share)
			}
		}
		counted := h.recorder.Counts()
		for category, message := range map[string]string{"lb": `call dropped by configuration, category "lb"`, "throttle": `call dropped by configuration, category "throttle"`} {
			found := false
			for labels, count := range counted {
				if strings.HasPrefix(labels, "understudy.drop.dropped ") && strings.HasSuffix(labels, " "+category+" ") {
					found = count == int64(got[message])
				}
			}
			if !found {
				t.Errorf("metrics %v do not count the %v calls dropped by %s", counted, got[message], category)
			}
		}
	})
}

func TestDropsOnlyWhileReady(t *testing.T) {
	inBubble(t, func(t *testing.T, h *harness) {
		h.update(`[{"category": "all", "requestsPerMillion": 1000000}]`)
		for state, want := range map[connectivity.State]string{
			connectivity.Connecting:       "queue",
			connectivity.Idle:             "queue",
			connectivity.TransientFailure: "fail: refused",
			connectivity.Ready:            `fail: rpc error: code = Unavailable desc = call dropped by configuration, category "all"`,
		} {
			var err error
			if state == connectivity.TransientFailure {
				err = errors.New("refused")
			}
			h.report(state, err)
			if got := lbtest.Pick(h.cc.State()); got != want || h.cc.State().ConnectivityState != state {
				t.Errorf("%v: calls get %q in %v, want %q", state, got, h.cc.State().ConnectivityState, want)
			}
		}
	})
}

func TestCategoriesChange(t *testing.T) {
	inBubble(t, func(t *testing.T, h *harness) {
		h.update(`[]`)
		h.report(connectivity.Ready, nil)
		for _, categories := range []string{`[{"category": "all", "requestsPerMillion": 1000000}]`, `[]`, `[{"category": "none", "requestsPerMillion": 0}]`} {
			before := len(h.cc.States())
			h.update(categories)
			if n := len(h.cc.States()) - before; n != 1 {
				t.Errorf("%s: published %d states, want 1", categories, n)
			}
			want := strings.Contains(categories, "1000000")
			if dropped := lbtest.Pick(h.cc.State()) != "child"; dropped != want {
				t.Errorf("%s: dropped = %v", categories, dropped)
			}
			if _, wrapped := h.cc.State().Picker.(*picker); wrapped != want {
				t.Errorf("%s: the child's picker is wrapped: %v", categories, wrapped)
			}
		}
		if n := len(h.builder.Built()); n != 1 {
			t.Errorf("built %d children, want 1", n)
		}
	})
}

func parseConfig(raw []byte) (*lbconfig.Drop, error) {
	c, err := newBuilder(Name).(balancer.ConfigParser).ParseConfig(raw)
	if err != nil {
		return nil, err
	}
	return c.(*lbconfig.Drop), nil
}
