package drop

import (
	"errors"
	"testing"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"

	"github.com/understudy-lb/understudy/internal/testing/lbtest"
)

func TestAChildThatFailsItsUpdate(t *testing.T) {
	inBubble(t, func(t *testing.T, h *harness) {
		h.builder.OnUpdate = func(*lbtest.Stub, balancer.ClientConnState) error { return errors.New("no good") }
		if err := h.update(`[]`); err == nil || err.Error() != "drop: the child refused its update: no good" {
			t.Errorf("error = %v, want the child's own", err)
		}
		if got := lbtest.Pick(h.cc.State()); got != "fail: drop: the child refused its update: no good" {
			t.Errorf("calls get %q", got)
		}
		h.report(connectivity.Ready, nil)
		h.update(`[]`)
		if got := lbtest.Pick(h.cc.State()); got != "child" {
			t.Errorf("a READY child that rejected its update: calls get %q", got)
		}
	})
}

func TestAChildThatConnectsAndFailsItsUpdate(t *testing.T) {
	inBubble(t, func(t *testing.T, h *harness) {
		h.builder.OnUpdate = func(s *lbtest.Stub, _ balancer.ClientConnState) error {
			s.Report(connectivity.Connecting, nil)
			return errors.New("no good")
		}
		h.update(`[]`)
		if got := lbtest.Pick(h.cc.State()); got != "fail: drop: the child refused its update: no good" {
			t.Errorf("calls get %q in %v", got, h.cc.State().ConnectivityState)
		}
		h.report(connectivity.Ready, nil)
		h.update(`[]`)
		if got := lbtest.Pick(h.cc.State()); got != "fail: drop: the child refused its update: no good" {
			t.Errorf("a READY child that reported CONNECTING and rejected its update: calls get %q in %v", got, h.cc.State().ConnectivityState)
		}
	})
}

func TestAChildsOwnReasonOutlivesBadResolverState(t *testing.T) {
	inBubble(t, func(t *testing.T, h *harness) {
		h.builder.OnUpdate = func(s *lbtest.Stub, _ balancer.ClientConnState) error {
			s.Report(connectivity.TransientFailure, errors.New("no endpoints here"))
			return balancer.ErrBadResolverState
		}
		h.update(`[]`)
		if got := lbtest.Pick(h.cc.State()); got != "fail: no endpoints here" {
			t.Errorf("calls get %q, want the child's own error", got)
		}
	})
}

func TestWrongConfigurationIsRefused(t *testing.T) {
	inBubble(t, func(t *testing.T, h *harness) {
		h.update(`[]`)
		h.report(connectivity.Ready, nil)
		err := h.policy.UpdateClientConnState(balancer.ClientConnState{BalancerConfig: &lbtest.StubConfig{}})
		if got := lbtest.Pick(h.cc.State()); err == nil || got != "child" {
			t.Errorf("error = %v, calls get %q; want an error and unchanged calls", err, got)
		}
	})
}
