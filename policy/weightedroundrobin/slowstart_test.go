package weightedroundrobin

import (
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/connectivity"
)

const slowStartConfig = `{"slowStart": {"window": "30s"}}`

func (h *harness) wantShare(want float64) {
	h.t.Helper()
	const n = 10_000
	if got := float64(strings.Count(h.picks(n), "b")) / n; math.Abs(got-want) > 0.005 {
		h.t.Errorf("b has %.4f of the calls, want %.4f", got, want)
	}
}

func advance(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// In grpc-go's xDS tree, weights are multiplied. The share of large weights must grow without an
// integer overflow.
func TestShareGrowsOverWindow(t *testing.T) {
	for _, list := range []string{"a b", "b a", "a:7 b:7", "a:2147483647 b:2147483648"} {
		run(t, func(h *harness) {
			h.update(slowStartConfig, list)
			h.ready("a")
			advance(time.Minute)
			h.ready("b")
			h.wantShare(0.1 / 1.1)
			advance(15 * time.Second)
			h.wantShare(0.5 / 1.5)
			advance(9 * time.Second)
			h.wantShare(0.8 / 1.8)
			advance(6 * time.Second)
			h.wantShare(0.5)
			states := len(h.cc.States())
			advance(time.Hour)
			if n := len(h.cc.States()); n != states {
				t.Errorf("%d states published after the window", n-states)
			}
		})
	}
}

func TestSlowStartBeginsWithEachReady(t *testing.T) {
	run(t, func(h *harness) {
		h.update(slowStartConfig, "a b")
		h.ready("a", "b")
		h.wantShare(0.5)
		advance(time.Minute)
		h.update(slowStartConfig, "a b:2 c")
		h.wantShare(2.0 / 3)
		h.update(slowStartConfig, "a b")
		h.report(connectivity.Idle, "b")
		h.ready("b")
		h.wantShare(0.1 / 1.1)
		h.update("", "a b")
		h.wantShare(0.5)
	})
}

func TestSlowStartIsOffByDefault(t *testing.T) {
	run(t, func(h *harness) {
		h.update("", "a b")
		h.ready("a")
		advance(time.Minute)
		h.ready("b")
		h.wantShare(0.5)
	})
}

func TestCloseEndsSlowStart(t *testing.T) {
	run(t, func(h *harness) {
		h.update(slowStartConfig, "a b")
		h.ready("a")
		advance(time.Minute)
		h.ready("b")
		h.policy.Close()
		states := len(h.cc.States())
		advance(time.Minute)
		if n := len(h.cc.States()); n != states {
			t.Errorf("%d states published after Close", n-states)
		}
	})
}

// A single READY endpoint gets all calls in any case, so no new picker may be made during its
// slow-start window.
func TestOnlyReadyEndpointHasNoSlowStart(t *testing.T) {
	run(t, func(h *harness) {
		h.update(slowStartConfig, "a b")
		h.ready("a")
		before := len(h.cc.States())
		advance(time.Minute)
		if n := len(h.cc.States()) - before; n != 0 {
			t.Errorf("published %d states in the window of the only READY endpoint, want none", n)
		}
	})
}
