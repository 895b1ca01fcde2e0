package weightedtarget

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/lb/hierarchy"
)

func inBubble(t *testing.T, f func(t *testing.T, h *harness)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t)
		defer h.policy.Close()
		f(t, h)
	})
}

func TestEndpointsReachChildInPath(t *testing.T) {
	inBubble(t, func(t *testing.T, h *harness) {
		h.weights = map[string]string{"a": "1", "b": "1"}
		endpoint := func(address string, path ...string) resolver.Endpoint {
			return hierarchy.Set(resolver.Endpoint{Addresses: []resolver.Address{{Addr: address}}}, path...)
		}
		err := h.policy.UpdateClientConnState(balancer.ClientConnState{
			BalancerConfig: h.configure(h.weights, ""),
			ResolverState: resolver.State{
				Addresses: []resolver.Address{{Addr: "of nobody"}},
				Endpoints: []resolver.Endpoint{
					endpoint("1", "a", "deeper"), endpoint("2", "b"), endpoint("3", "a"),
					endpoint("4", "unknown"), {Addresses: []resolver.Address{{Addr: "5"}}},
				},
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		a, b := h.builder.Get("a"), h.builder.Get("b")
		if !slices.Equal(a.Addresses(), []string{"1", "3"}) || !slices.Equal(b.Addresses(), []string{"2"}) {
			t.Errorf("a has %v, b has %v", a.Addresses(), b.Addresses())
		}
		if path := hierarchy.Path(a.LastUpdate().ResolverState.Endpoints[0]); !slices.Equal(path, []string{"deeper"}) {
			t.Errorf("path below a = %q, want [deeper]", path)
		}
		if got := a.LastUpdate().ResolverState.Addresses; len(got) != 2 || got[0].Addr != "1" || got[1].Addr != "3" {
			t.Errorf("a was given the addresses %v, want those of its endpoints", got)
		}
	})
}

func TestExitIdleReachesChildren(t *testing.T) {
	inBubble(t, func(t *testing.T, h *harness) {
		h.update("a=1 b=1", `, "removedChildRetention": "60s"`)
		a := h.builder.Get("a")
		h.update("b=1", `, "removedChildRetention": "60s"`)
		h.policy.ExitIdle()
		synctest.Wait()
		if a.ExitIdles() != 0 || h.builder.Get("b").ExitIdles() != 1 {
			t.Errorf("ExitIdle was called %d times for a, %d times for b; want 0 and 1", a.ExitIdles(), h.builder.Get("b").ExitIdles())
		}
	})
}

func TestRemovedChildren(t *testing.T) {
	inBubble(t, func(t *testing.T, h *harness) {
		h.update("a=1 b=1", "")
		a := h.builder.Get("a")
		h.update("b=1", "")
		if !a.IsClosed() {
			t.Error("the removed child is still open")
		}

		const keep = `, "removedChildRetention": "60s"`
		h.update("a=1 b=1", keep)
		h.report("a", connectivity.Ready)
		a = h.builder.Get("a")
		h.update("b=1", keep)
		before := len(h.cc.States())
		h.report("a", connectivity.TransientFailure)
		h.report("a", connectivity.Ready)
		if got := h.describe(); got != "CONNECTING queue\n" || len(h.cc.States()) != before {
			t.Errorf("a removed child affects the state, or is published: %s", got)
		}
		time.Sleep(59 * time.Second)
		synctest.Wait()
		h.update("a=1 b=1", keep)
		if got := h.describe(); got != "READY a*1\n" || h.builder.Get("a") != a {
			t.Errorf("the child that was added again is a new one, or unused: %s", got)
		}
		h.update("b=1", keep)
		time.Sleep(60 * time.Second)
		synctest.Wait()
		if !a.IsClosed() {
			t.Error("the removed child is still open after its retention")
		}
	})
}

// A child that has failed must count as failed while it is CONNECTING again, even if it was removed
// in the meantime and is retained.
func TestFailedChildCountsAsFailedAfterRetention(t *testing.T) {
	inBubble(t, func(t *testing.T, h *harness) {
		const keep = `, "removedChildRetention": "60s"`
		h.update("a=1", keep)
		h.report("a", connectivity.TransientFailure)
		h.update("b=1", keep)
		h.report("a", connectivity.Connecting)
		h.update("a=1", keep)
		if got := h.describe(); got != "TRANSIENT_FAILURE a*1\n" {
			t.Errorf("state = %s after a failed child was retained, reported CONNECTING and was added again", got)
		}
	})
}

// Close must also close retained children.
func TestCloseClosesRetainedChildren(t *testing.T) {
	inBubble(t, func(t *testing.T, h *harness) {
		h.update("a=1 b=1", "")
		h.update("b=1", `, "removedChildRetention": "60s"`)
		h.policy.Close()
		for _, stub := range h.builder.Built() {
			if stub.Closes() != 1 {
				t.Errorf("a child was closed %d times, want once", stub.Closes())
			}
			stub.Report(connectivity.Ready, nil)
		}
		synctest.Wait()
		if n := len(h.cc.States()); n != 2 {
			t.Errorf("published %d states, want 2: none after Close", n)
		}
	})
}

// "The name (key of the map) will allow the LB policy to be intelligent about updating existing
// children instead of needlessly recreating them" (gRFC A28).
func TestNamesKeepChildren(t *testing.T) {
	inBubble(t, func(t *testing.T, h *harness) {
		h.update("a=1 b=1", "")
		if n := len(h.builder.Built()); n != 2 {
			t.Errorf("built %d children, want one for each target", n)
		}
		a, b := h.builder.Get("a"), h.builder.Get("b")
		h.update("b=5 a=2 c=1", "")
		if h.builder.Get("a") != a || h.builder.Get("b") != b || len(h.builder.Built()) != 3 {
			t.Errorf("built %d children, want those of a and b kept, and c new", len(h.builder.Built()))
		}
		if a.Updates() != 2 || b.Updates() != 2 {
			t.Errorf("a was updated %d times, b %d times, want 2", a.Updates(), b.Updates())
		}
	})
}
