package weightedtarget

import (
	"testing"
	"testing/synctest"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"

	"github.com/understudy-lb/understudy/internal/shell"
)

// half is a picker of a child half of which is READY.
type half struct{ balancer.Picker }

func (half) ReadyPart() float64 { return 0.5 }

// The part of the weight that is READY is that of the READY targets, as far as they are,
// of that of those which are READY or have failed; one that is retained does not count.
func TestReadyPart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t)
		defer h.policy.Close()
		want := func(what string, want float64) {
			t.Helper()
			synctest.Wait()
			if got := shell.TierOf(h.cc.State().Picker).ReadyPart; got != want {
				t.Errorf("%s: %v is READY, want %v", what, got, want)
			}
		}
		if err := h.update("a=3 b=1", `, "removedChildRetention": "60s"`); err != nil {
			t.Fatal(err)
		}
		h.report("a", connectivity.Ready)
		want("one of two, and the other connects", 1)
		h.report("b", connectivity.TransientFailure)
		want("three of four, and the other has failed", 0.75)
		h.report("b", connectivity.Connecting)
		want("three of four, and the other tries again", 0.75)
		h.report("b", connectivity.Ready)
		want("all", 1)
		h.builder.Get("a").CC.UpdateState(balancer.State{ConnectivityState: connectivity.Ready, Picker: half{shell.Queue}})
		want("half of three, and one", 0.625)
		h.report("b", connectivity.TransientFailure)
		want("half of three", 0.375)
		if err := h.update("a=3", `, "removedChildRetention": "60s"`); err != nil {
			t.Fatal(err)
		}
		want("half of what is configured", 0.5)
	})
}

// A target that connects again counts neither way, as far as it was READY: what of it was not
// still counts, so that too little of the policy is READY meanwhile, too.
func TestReadyPartOfOneThatConnectsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t)
		defer h.policy.Close()
		if err := h.update("a=3 b=1", ""); err != nil {
			t.Fatal(err)
		}
		h.report("a", connectivity.Ready)
		h.builder.Get("b").CC.UpdateState(balancer.State{ConnectivityState: connectivity.Ready, Picker: half{shell.Queue}})
		for _, step := range []struct {
			state connectivity.State
			want  float64
		}{{connectivity.Idle, 3 / 3.5}, {connectivity.Connecting, 3 / 3.5}, {connectivity.Ready, 1}, {connectivity.Idle, 1}} {
			h.report("b", step.state)
			if got := shell.TierOf(h.cc.State().Picker).ReadyPart; got != step.want {
				t.Errorf("b is %v: %v is READY, want %v", step.state, got, step.want)
			}
		}
	})
}

// doubtful is a picker of a child a quarter of which is READY and unproven.
type doubtful struct{ half }

func (doubtful) UnprovenPart() float64 { return 0.25 }

// The part that is unproven is handed on, by weight.
func TestUnprovenPart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t)
		defer h.policy.Close()
		if err := h.update("a=3 b=1", ""); err != nil {
			t.Fatal(err)
		}
		h.builder.Get("a").CC.UpdateState(balancer.State{ConnectivityState: connectivity.Ready, Picker: doubtful{half{shell.Queue}}})
		h.report("b", connectivity.Ready)
		synctest.Wait()
		if got := shell.TierOf(h.cc.State().Picker); got.ReadyPart != 0.625 || got.UnprovenPart != 0.1875 {
			t.Errorf("%v is READY, %v unproven, want 0.625 and 0.1875", got.ReadyPart, got.UnprovenPart)
		}
	})
}
