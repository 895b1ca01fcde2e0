package weightedtarget

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/connectivity"

	"github.com/understudy-lb/understudy/internal/lb/shell"
	"github.com/understudy-lb/understudy/internal/lb/stateattr"
	"github.com/understudy-lb/understudy/internal/testing/lbtest"
)

// page describes the snapshot of the policy: for each child, its name, its weight, the state with
// which it counts, and how many calls it was given.
func (h *harness) page(t *testing.T) string {
	t.Helper()
	time.Sleep(time.Second)
	synctest.Wait()
	s := h.policy.(shell.Watchable).Snapshot()
	state, _ := s.Details.(shell.WeightedTarget)
	if state.Scheduled == nil {
		t.Fatal("the snapshot has no counts")
	}
	var all []string
	for i, n := range state.Scheduled() {
		c := s.Children[i]
		target, _ := c.Details.(shell.Target)
		all = append(all, fmt.Sprintf("%s weight %d %v: %d", c.Name, target.Weight, target.CountsAs, n))
	}
	return strings.Join(all, "; ")
}

func (h *harness) pick(calls int) {
	for range calls {
		lbtest.Pick(h.cc.State())
	}
}

// The debug page shows the targets and the calls that each got while the page was open. A target
// that was removed and added again is a new one.
func TestDebugPage(t *testing.T) {
	inBubble(t, func(t *testing.T, h *harness) {
		want := func(what, want string) {
			t.Helper()
			if got := h.page(t); got != want {
				t.Errorf("%s: the page shows %s, want %s", what, got, want)
			}
		}
		h.update("a=1 b=3", "")
		h.report("a", connectivity.Ready)
		h.report("b", connectivity.Ready)
		h.pick(40)
		stop := h.policy.(shell.Watchable).Watch()
		synctest.Wait()
		h.pick(40)
		want("40 calls", "a weight 1 READY: 10; b weight 3 READY: 30")
		h.report("b", connectivity.Ready)
		h.pick(40)
		want("40 more with another picker", "a weight 1 READY: 20; b weight 3 READY: 60")
		h.update("a=1", keep)
		want("b is retained", "a weight 1 READY: 20; b weight 0 READY: 60")
		h.update("a=1", "")
		h.update("a=1 b=3", "")
		h.report("b", connectivity.Ready)
		h.pick(4)
		h.update("a=1", "")
		time.Sleep(time.Minute)
		h.update("a=1 b=3", "")
		want("b is a new one", "a weight 1 READY: 21; b weight 3 CONNECTING: 0")
		stop()
	})
}

func TestTargetIsLocalityInMetrics(t *testing.T) {
	inBubble(t, func(t *testing.T, h *harness) {
		h.update("a=1 b=1", "")
		for _, name := range []string{"a", "b"} {
			if got := stateattr.LabelsOf(h.builder.Get(name).LastUpdate().ResolverState).Locality; got != name {
				t.Errorf("the locality of %s is %q in metrics", name, got)
			}
		}
	})
}
