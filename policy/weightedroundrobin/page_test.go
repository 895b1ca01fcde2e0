package weightedroundrobin

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/attributes"
	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/experimental/balancer/weight"
	estats "google.golang.org/grpc/experimental/stats"
	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/lb/leaf"
	"github.com/understudy-lb/understudy/internal/lb/shell"
	"github.com/understudy-lb/understudy/internal/lb/stateattr"
	"github.com/understudy-lb/understudy/internal/testing/lbtest"
)

// page describes the snapshot of the policy: for each endpoint, its name, its weight, how many
// calls it was given and how many it got.
func (h *harness) page() string {
	h.t.Helper()
	time.Sleep(time.Second)
	synctest.Wait()
	s := h.policy.(shell.Watchable).Snapshot()
	attributePair, _ := s.Details.(shell.WeightedRoundRobin)
	if attributePair.Scheduled == nil {
		h.t.Fatal("the snapshot has no counts")
	}
	var all []string
	for i, n := range attributePair.Scheduled() {
		e := s.Children[i].Details.(shell.Endpoint)
		started, _, _ := e.Record.Calls()
		all = append(all, fmt.Sprintf("%s weight %d: %d, %d", s.Children[i].Name, e.Weight, n, started))
	}
	return strings.Join(all, "; ")
}

// The debug page shows the endpoints and the calls that each got while the page was open.
func TestDebugPage(t *testing.T) {
	run(t, func(h *harness) {
		want := func(want string) {
			h.t.Helper()
			if got := h.page(); got != want {
				t.Errorf("the page shows %s, want %s", got, want)
			}
		}
		h.update("", "a:1 b:3")
		h.ready("a", "b")
		h.picks(40)
		stop := h.policy.(shell.Watchable).Watch()
		synctest.Wait()
		h.picks(40)
		want("a weight 1: 10, 10; b weight 3: 30, 30")
		h.update("", "a:1 b:1")
		h.picks(40)
		want("a weight 1: 30, 30; b weight 1: 50, 50")
		h.update("", "a:1")
		h.update("", "a:1 b:1")
		want("a weight 1: 30, 30; b weight 1: 0, 0")
		stop()
		synctest.Wait()
		h.picks(40)
		stop = h.policy.(shell.Watchable).Watch()
		want("a weight 1: 30, 30; b weight 1: 0, 0")
		stop()
	})
}

// reporters counts the reporters that are registered.
type reporters struct {
	lbtest.Recorder
	open atomic.Int32
}

func (r *reporters) RegisterAsyncReporter(reporter estats.AsyncMetricReporter, metrics ...estats.AsyncMetric) func() {
	r.open.Add(1)
	unregister := r.Recorder.RegisterAsyncReporter(reporter, metrics...)
	return func() {
		r.open.Add(-1)
		unregister()
	}
}

// After the policies of a channel are closed, nothing of them may be left: neither the reporter at
// the recorder nor what the policies of the channel share.
func TestCloseReleasesEverything(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		recorder := &reporters{}
		shared := func() bool { return leaf.Holds(recorder) }
		var policies []balancer.Balancer
		for range 2 {
			p := newBuilder("wrr").Build(&lbtest.ClientConn{Recorder: recorder}, balancer.BuildOptions{})
			state := stateattr.SetLabels(resolver.State{Endpoints: endpoints("a")}, stateattr.Labels{Priority: "p0"})
			if err := p.UpdateClientConnState(balancer.ClientConnState{ResolverState: state}); err != nil {
				t.Fatal(err)
			}
			policies = append(policies, p)
		}
		synctest.Wait()
		for i, remaining := range []int32{2, 1, 0} {
			if n := recorder.open.Load(); n != remaining || shared() != (remaining > 0) {
				t.Errorf("%d policies are open: %d reporters, and something shared = %v", remaining, n, shared())
			}
			if remaining > 0 {
				policies[i].Close()
				synctest.Wait()
			}
		}
	})
}

// A child always gets its current endpoint, also if only the weight changed before. An endpoint
// that is listed twice, with other attributes, is the first one.
func TestChildGetsItsCurrentEndpoint(t *testing.T) {
	leaf, builder := stubLeaf("wrr_current")
	runWith(t, builder, func(h *harness) {
		addresses := endpoint("a").Addresses
		update := func(state string, weights ...uint32) {
			t.Helper()
			var list []resolver.Endpoint
			for i, w := range weights {
				e := weight.Set(resolver.Endpoint{Addresses: addresses}, weight.EndpointInfo{Weight: w})
				e.Attributes = e.Attributes.WithValue("place", i)
				list = append(list, e)
			}
			attributes := attributes.New("state", state)
			h.mustUpdate("", resolver.State{Endpoints: list, Attributes: attributes})
		}
		for _, step := range []struct {
			state   string
			weights []uint32
			sum     uint32
			updates int // of the child
			weight  uint32
		}{
			{"x", []uint32{1}, 1, 1, 1},
			{"x", []uint32{7}, 7, 1, 1},
			{"y", []uint32{7}, 7, 2, 7},
			{"y", []uint32{7, 3}, 10, 2, 7},
			{"y", []uint32{7, 3}, 10, 2, 7},
			{"z", []uint32{7, 3}, 10, 3, 7},
		} {
			update(step.state, step.weights...)
			if got := h.inner().core.Order()[0].Weight(); got != step.sum {
				t.Errorf("%v: the weight is %d, want %d", step, got, step.sum)
			}
			child := leaf.Built()[0]
			e := child.LastUpdate().ResolverState.Endpoints[0]
			if got := weight.FromEndpoint(e).Weight; got != step.weight || child.Updates() != step.updates || e.Attributes.Value("place") != 0 {
				t.Errorf("%v: the child has got %d updates, and an endpoint of weight %d; want %d, %d", step, child.Updates(), got, step.updates, step.weight)
			}
		}
	})
}

// A client connects to the first endpoint first or, with "random", to a random one.
func TestFirstConnectedEndpoint(t *testing.T) {
	for config, most := range map[string]int{"": 1, `{"startPoint": "spec"}`: 1, `{"startPoint": "random"}`: 3} {
		first := make(map[string]bool)
		for range 50 {
			run(t, func(h *harness) {
				h.update(config, "a b c")
				first[h.cc.SubConns()[0].Addresses[0].Addr] = true
			})
		}
		if len(first) != most || most == 1 && !first["a"] {
			t.Errorf("%s: 50 clients connect first to %v, want %d endpoints, a among them", config, first, most)
		}
	}
}

// Only the first export makes the policy count the picks of a single endpoint, with a new picker.
func TestLaterExportsPublishNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMetered(t, &lbtest.Recorder{})
		defer m.policy.Close()
		m.updateLabels("p0", "a")
		m.ready("a")
		for i, want := range []int{1, 0, 0} {
			before := len(m.cc.States())
			m.recorder.Export()
			synctest.Wait()
			if n := len(m.cc.States()) - before; n != want {
				t.Errorf("export %d published %d states, want %d", i, n, want)
			}
		}
	})
}
