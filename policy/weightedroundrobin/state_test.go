package weightedroundrobin

import (
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/resolver"
)

// A child that loses its connection is reconnected at once. The policy must not publish IDLE.
func TestLostConnectionReconnectsImmediately(t *testing.T) {
	run(t, func(h *harness) {
		h.update("", "a")
		h.ready("a")
		time.Sleep(time.Second) // a connection that lasts less than a second would count as a failure
		before := len(h.cc.States())
		h.report(connectivity.Idle, "a")
		for _, s := range h.cc.States()[before:] {
			if s.ConnectivityState != connectivity.Connecting {
				t.Errorf("published %v, want CONNECTING alone", s.ConnectivityState)
			}
		}
	})
}

func TestErrorHasNumberOfFailedEndpoints(t *testing.T) {
	run(t, func(h *harness) {
		h.update("", "a b c d")
		h.report(connectivity.TransientFailure, "a", "b", "d", "c")
		h.wantPick("fail: all 4 endpoints failed, one of them with: a is down")
		h.update("", "a")
		h.wantPick("fail: a is down")
	})
}

func TestErrorStaysThatOfFirstFailedChild(t *testing.T) {
	run(t, func(h *harness) {
		h.update("", "a b")
		h.report(connectivity.TransientFailure, "b", "a")
		h.wantState(connectivity.TransientFailure, "fail: b is down")
		h.report(connectivity.TransientFailure, "a")
		h.wantState(connectivity.TransientFailure, "fail: b is down")
		h.update("", "a")
		h.wantState(connectivity.TransientFailure, "fail: a is down")
	})
}

func TestNoEndpoints(t *testing.T) {
	const want = "fail: weighted_round_robin: no endpoints: the resolver returned none, or none with a path to this policy"
	for _, before := range []string{"", "a b"} {
		run(t, func(h *harness) {
			if before != "" {
				h.update("", before)
				h.ready("a")
			}
			if err := h.updateWith("", resolver.State{}); err != balancer.ErrBadResolverState {
				t.Errorf("error = %v, want ErrBadResolverState", err)
			}
			h.wantState(connectivity.TransientFailure, want)
			if live := h.cc.LiveSubConns(); len(live) > 0 {
				t.Errorf("still connected: %v", live)
			}
			h.update("", "c")
			h.wantState(connectivity.Connecting, "queue")
			h.ready("c")
			h.wantState(connectivity.Ready, "c")
		})
	}
}

func TestEndpointWithoutAddressesIsIgnored(t *testing.T) {
	run(t, func(h *harness) {
		es := append(endpoints("a"), resolver.Endpoint{})
		h.mustUpdate("", resolver.State{Endpoints: es})
		h.report(connectivity.TransientFailure, "a")
		h.wantState(connectivity.TransientFailure, "fail: a is down")
		if err := h.updateWith("", resolver.State{Endpoints: es[1:]}); err != balancer.ErrBadResolverState {
			t.Errorf("error = %v, want ErrBadResolverState", err)
		}
	})
}

func TestRepeatedReadyDoesNotRestartSlowStart(t *testing.T) {
	leaf, builder := stubLeaf("wrr_again")
	runWith(t, builder, func(h *harness) {
		h.update(slowStartConfig, "a b")
		a := stubOf(leaf, "a")
		reportStub(a, connectivity.Ready)
		reportStub(stubOf(leaf, "b"), connectivity.Ready)
		advance(time.Minute)
		reportStub(a, connectivity.Ready)
		synctest.Wait()
		h.wantPicks("abab")
	})
}
