package weightedroundrobin

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/lb/weighted"
)

func TestStateIsAggregatedAsInRoundRobin(t *testing.T) {
	run(t, func(h *harness) {
		h.update("", "a b")
		h.wantState(connectivity.Connecting, "queue")
		h.report(connectivity.TransientFailure, "a")
		h.wantState(connectivity.Connecting, "queue")
		h.report(connectivity.TransientFailure, "b")
		h.wantState(connectivity.TransientFailure, "fail: a is down")
		h.report(connectivity.Idle, "b")
		h.report(connectivity.Connecting, "b")
		h.wantState(connectivity.TransientFailure, "fail: a is down") // after a failure, CONNECTING is ignored (gRFC A62)
		h.ready("a")
		h.wantState(connectivity.Ready, "a")
		time.Sleep(time.Second) // a connection that lasts less than a second would count as a failure
		h.report(connectivity.Idle, "a")
		h.wantState(connectivity.Connecting, "queue")
	})
}

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

func TestFirstReadyIsPublishedImmediately(t *testing.T) {
	run(t, func(h *harness) {
		h.update("", "a b")
		h.ready("b")
		h.wantState(connectivity.Ready, "b")
		if h.cc.State().Picker.(*weighted.Picker).Len() != 1 {
			t.Errorf("the picker of one endpoint is a %T, want no scheduler", h.cc.State().Picker)
		}
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
		if err := h.updateWith("", resolver.State{Endpoints: es}); err != nil {
			t.Fatal(err)
		}
		h.report(connectivity.TransientFailure, "a")
		h.wantState(connectivity.TransientFailure, "fail: a is down")
		if err := h.updateWith("", resolver.State{Endpoints: es[1:]}); err != balancer.ErrBadResolverState {
			t.Errorf("error = %v, want ErrBadResolverState", err)
		}
	})
}

func TestResolverErrorWithoutChildren(t *testing.T) {
	const want = "fail: weighted_round_robin: the resolver failed: no such host"
	run(t, func(h *harness) {
		h.policy.ResolverError(errors.New("no such host"))
		synctest.Wait()
		h.wantState(connectivity.TransientFailure, want)
		h.update("", "a")
		h.wantState(connectivity.Connecting, "queue")
		h.policy.ResolverError(errors.New("no such host"))
		synctest.Wait()
		h.wantState(connectivity.Connecting, "queue")
		h.ready("a")
		h.policy.ResolverError(errors.New("no such host"))
		synctest.Wait()
		h.wantState(connectivity.Ready, "a")
		h.updateWith("", resolver.State{})
		h.policy.ResolverError(errors.New("no such host"))
		synctest.Wait()
		h.wantState(connectivity.TransientFailure, want)
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
