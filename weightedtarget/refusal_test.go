package weightedtarget

import (
	"errors"
	"testing"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"

	"github.com/understudy-lb/understudy/internal/testing/lbtest"
)

func TestWrongConfigurationIsRefused(t *testing.T) {
	inBubble(t, func(t *testing.T, h *harness) {
		h.update("a=1", "")
		h.report("a", connectivity.Ready)
		err := h.policy.UpdateClientConnState(balancer.ClientConnState{BalancerConfig: &lbtest.StubConfig{}})
		if !errors.Is(err, balancer.ErrBadResolverState) {
			t.Errorf("error = %v, want one that wraps ErrBadResolverState", err)
		}
		if got := h.describe(); got != "READY a*1\n" {
			t.Errorf("state = %s, want it unchanged", got)
		}
	})
}

// An update that the child accepts returns no error, even if the child reports
// TRANSIENT_FAILURE.
func TestARefusalIsReturnedOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, h *harness) {
		refuse := true
		h.builder.OnUpdate = func(s *lbtest.Stub, _ balancer.ClientConnState) error {
			s.Report(connectivity.TransientFailure, errors.New("down"))
			if refuse {
				return errors.New("no good")
			}
			return nil
		}
		if err := h.update("a=1", ""); err == nil {
			t.Error("no error, want the child's")
		}
		refuse = false
		if err := h.update("a=1", ""); err != nil {
			t.Errorf("error = %v of an update that the child accepted", err)
		}
	})
}

func TestAnIdleChildThatFailsItsUpdate(t *testing.T) {
	inBubble(t, func(t *testing.T, h *harness) {
		h.update("a=1", "")
		h.report("a", connectivity.Idle)
		h.builder.OnUpdate = func(*lbtest.Stub, balancer.ClientConnState) error { return errors.New("no good") }
		if err := h.update("a=1", ""); err != nil {
			t.Errorf("error = %v, want none: the policy has not failed", err)
		}
		if got := h.describe(); got != "IDLE a*1\n" {
			t.Errorf("state = %s, want it unchanged", got)
		}
	})
}

func TestReportsOfARetainedChildAreNotPublished(t *testing.T) {
	inBubble(t, func(t *testing.T, h *harness) {
		h.update("a=1 b=1", keep)
		h.report("b", connectivity.Ready)
		h.update("b=1", keep)
		before := len(h.cc.States())
		for _, state := range []connectivity.State{connectivity.Ready, connectivity.Connecting, connectivity.TransientFailure, connectivity.Ready} {
			h.report("a", state)
		}
		if n := len(h.cc.States()) - before; n != 0 {
			t.Errorf("published %d states, want none", n)
		}
	})
}
