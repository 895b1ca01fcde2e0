package weightedtarget

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"

	"github.com/understudy-lb/understudy/internal/testing/lbtest"
)

// A failed child that is CONNECTING again counts as failed, so nothing must be published. A new
// error of a failed child must be published, and a new picker of one that is READY.
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
		h.report("b", connectivity.Ready)
		before = len(h.cc.States())
		h.report("a", connectivity.Connecting)
		h.report("a", connectivity.TransientFailure)
		if n := len(h.cc.States()) - before; n != 0 {
			t.Errorf("published %d states beside a READY child, want none", n)
		}
		h.report("b", connectivity.Ready)
		if n := len(h.cc.States()) - before; n != 1 {
			t.Errorf("published %d states for a new picker, want 1", n)
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

const keep = `, "removedChildRetention": "60s"`
