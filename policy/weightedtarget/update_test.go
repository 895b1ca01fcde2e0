package weightedtarget

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/lb/hierarchy"
	"github.com/understudy-lb/understudy/internal/testing/lbtest"
	"github.com/understudy-lb/understudy/internal/testing/testlog"
)

// A failed child that is CONNECTING again counts as failed, so nothing must be published. A new
// error of a failed child must be published.
func TestReconnectingFailedChildIsNotPublished(t *testing.T) {
	inBubble(t, func(t *testing.T, h *harness) {
		h.update("a=1 b=1", "")
		h.report("a", connectivity.TransientFailure)
		h.report("b", connectivity.TransientFailure)
		before := len(h.cc.States())
		h.report("a", connectivity.Connecting)
		if n := len(h.cc.States()) - before; n != 0 {
			t.Errorf("published %d states, want none", n)
		}
		h.report("a", connectivity.TransientFailure)
		if n := len(h.cc.States()) - before; n != 1 {
			t.Errorf("published %d states for a new error, want 1", n)
		}
	})
}

func TestFirstErrorIsReturned(t *testing.T) {
	inBubble(t, func(t *testing.T, h *harness) {
		h.builder.OnUpdate = func(s *lbtest.Stub, _ balancer.ClientConnState) error {
			return fmt.Errorf("%s is no good", s.ID())
		}
		for range 20 {
			if err := h.update("c=1 a=1 d=1 b=1", ""); err == nil || !strings.Contains(err.Error(), "a is no good") {
				t.Fatalf("error = %v, want that of a", err)
			}
		}
	})
}

func TestUpdateClearsResolverError(t *testing.T) {
	inBubble(t, func(t *testing.T, h *harness) {
		h.policy.ResolverError(errors.New("no such host"))
		h.update("", "")
		if got := lbtest.Pick(h.cc.State()); got != "fail: "+errNoTargets.Error() {
			t.Errorf("calls get %q, want that there are no targets", got)
		}
	})
}

func TestRemovedChildIsClosedDuringUpdate(t *testing.T) {
	inBubble(t, func(t *testing.T, h *harness) {
		h.update("a=1 b=1", "")
		a := h.builder.Get("a")
		h.policy.UpdateClientConnState(balancer.ClientConnState{BalancerConfig: h.configure(map[string]string{"b": "1"}, "")})
		if !a.IsClosed() {
			t.Error("the removed child is still open after the update")
		}
	})
}

const keep = `, "removedChildRetention": "60s"`

func TestUpdatesDoNotProlongRetention(t *testing.T) {
	inBubble(t, func(t *testing.T, h *harness) {
		h.update("a=1 b=1", keep)
		a := h.builder.Get("a")
		for range 2 {
			h.update("b=1", keep)
			time.Sleep(30 * time.Second)
		}
		synctest.Wait()
		if !a.IsClosed() {
			t.Error("the removed child is still open after its retention because of another update")
		}
	})
}

// The retention time of a removed child ends while an update adds the child again. The child must
// be kept.
func TestRetentionTimerStoppedWhileItFires(t *testing.T) {
	inBubble(t, func(t *testing.T, h *harness) {
		h.update("a=1 z=1", keep)
		z := h.builder.Get("z")
		h.update("a=1", keep)
		h.builder.OnUpdate = func(s *lbtest.Stub, _ balancer.ClientConnState) error {
			if s.ID() == "a" {
				time.Sleep(61 * time.Second)
			}
			return nil
		}
		h.update("a=1 z=1", keep)
		if z.IsClosed() || h.builder.Get("z") != z {
			t.Error("the child that was added again was closed by its retention timer")
		}
		h.report("z", connectivity.Ready)
		if got := h.describe(); got != "READY z*1\n" {
			t.Errorf("state = %s, want calls to go to z", got)
		}
	})
}

var logged = testlog.CaptureWarnings()

func TestEndpointsWithoutChildAreLoggedOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, h *harness) {
		logged.Take()
		h.update("a=1", "")
		if got := logged.Take(); got != "" {
			t.Errorf("logged %q although all endpoints belong to a child", got)
		}
		stray := hierarchy.Set(resolver.Endpoint{Addresses: []resolver.Address{{Addr: "1"}}}, "nobody")
		for range 3 {
			h.policy.UpdateClientConnState(balancer.ClientConnState{
				BalancerConfig: h.configure(map[string]string{"a": "1"}, ""),
				ResolverState:  resolver.State{Endpoints: []resolver.Endpoint{stray}},
			})
		}
		if got := logged.Take(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "1 of 1 endpoints") {
			t.Errorf("logged %q, want one line about one endpoint", got)
		}
	})
}
