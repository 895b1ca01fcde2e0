package weightedtarget

import (
	"testing"
	"testing/synctest"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"

	"github.com/understudy-lb/understudy/internal/lb/shell"
)

type halfReadyPicker struct{ balancer.Picker }

func (halfReadyPicker) ReadyShare() float64 { return 0.5 }

// The policy's READY share must be the average of its targets' READY shares, by weight. Retained
// targets must not count, nor targets that are connecting for the first time.
func TestReadyShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t)
		defer h.policy.Close()
		want := func(what string, want float64) {
			t.Helper()
			synctest.Wait()
			if got := shell.TierOf(h.cc.State().Picker).ReadyShare; got != want {
				t.Errorf("%s: READY share is %v, want %v", what, got, want)
			}
		}
		if err := h.update("a=3 b=1", `, "removedChildRetention": "60s"`); err != nil {
			t.Fatal(err)
		}
		h.report("a", connectivity.Ready)
		want("a is READY, b is CONNECTING", 1)
		h.report("b", connectivity.TransientFailure)
		want("a is READY, b has failed", 0.75)
		h.report("b", connectivity.Connecting)
		want("a is READY, b is CONNECTING after a failure", 0.75)
		h.report("b", connectivity.Ready)
		want("both are READY", 1)
		h.builder.Get("a").CC.UpdateState(balancer.State{ConnectivityState: connectivity.Ready, Picker: halfReadyPicker{shell.Queue}})
		want("half of a is READY, and b", 0.625)
		h.report("b", connectivity.TransientFailure)
		want("half of a is READY, b has failed", 0.375)
		if err := h.update("a=3", `, "removedChildRetention": "60s"`); err != nil {
			t.Fatal(err)
		}
		want("half of a is READY, b is retained", 0.5)
	})
}

// A target reconnects. The READY share must stay the same: only the weight that was not READY
// before counts as lost.
func TestReadyShareOfReconnectingTarget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t)
		defer h.policy.Close()
		if err := h.update("a=3 b=1", ""); err != nil {
			t.Fatal(err)
		}
		h.report("a", connectivity.Ready)
		h.builder.Get("b").CC.UpdateState(balancer.State{ConnectivityState: connectivity.Ready, Picker: halfReadyPicker{shell.Queue}})
		for _, step := range []struct {
			state connectivity.State
			want  float64
		}{{connectivity.Idle, 3 / 3.5}, {connectivity.Connecting, 3 / 3.5}, {connectivity.Ready, 1}, {connectivity.Idle, 1}} {
			h.report("b", step.state)
			if got := shell.TierOf(h.cc.State().Picker).ReadyShare; got != step.want {
				t.Errorf("b is %v: READY share is %v, want %v", step.state, got, step.want)
			}
		}
	})
}

type unprovenPicker struct{ halfReadyPicker }

func (unprovenPicker) UnprovenShare() float64 { return 0.25 }

func TestUnprovenShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t)
		defer h.policy.Close()
		if err := h.update("a=3 b=1", ""); err != nil {
			t.Fatal(err)
		}
		h.builder.Get("a").CC.UpdateState(balancer.State{ConnectivityState: connectivity.Ready, Picker: unprovenPicker{halfReadyPicker{shell.Queue}}})
		h.report("b", connectivity.Ready)
		synctest.Wait()
		if got := shell.TierOf(h.cc.State().Picker); got.ReadyShare != 0.625 || got.UnprovenShare != 0.1875 {
			t.Errorf("READY and unproven shares are %v and %v, want 0.625 and 0.1875", got.ReadyShare, got.UnprovenShare)
		}
	})
}
