package drop

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/config/lbconfig"
	"github.com/understudy-lb/understudy/internal/lb/shell"
	"github.com/understudy-lb/understudy/internal/lb/stateattr"
	"github.com/understudy-lb/understudy/internal/testing/lbtest"
)

const all = `[{"category": "all", "requestsPerMillion": 1000000}]`

// The debug page shows the categories and the child.
func TestDebugPage(t *testing.T) {
	inBubble(t, func(t *testing.T, h *harness) {
		watched := h.policy.(shell.Watchable)
		defer watched.Watch()()
		if s := watched.Snapshot(); s != nil && len(s.Children) != 0 {
			t.Errorf("before the first update, the policy has %d children", len(s.Children))
		}
		for categories, want := range map[string]string{`[]`: "<nil>", all: "[{all 1000000}]"} {
			if err := h.update(categories); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
			synctest.Wait()
			s := watched.Snapshot()
			if got := fmt.Sprint(s.Details); got != want {
				t.Errorf("%s: the page shows %s, want %s", categories, got, want)
			}
			if len(s.Children) != 1 || s.Children[0].State != connectivity.Connecting {
				t.Errorf("%s: the children are %+v, want one that is CONNECTING", categories, s.Children)
			}
		}
	})
}

func TestExitIdleReachesChild(t *testing.T) {
	inBubble(t, func(t *testing.T, h *harness) {
		h.update(`[]`)
		h.policy.ExitIdle()
		synctest.Wait()
		if n := h.builder.Get("child").ExitIdles(); n != 1 {
			t.Errorf("ExitIdle was called %d times for the child, want once", n)
		}
	})
}

// The metric names the priority and the cluster. They change with an update. An update that changes
// neither them nor the categories must publish nothing.
func TestLabelsOfDroppedCalls(t *testing.T) {
	inBubble(t, func(t *testing.T, h *harness) {
		c, err := parseConfig(fmt.Appendf(nil, `{"dropCategories": %s, "childPolicy": [{%q: {"id": "child"}}]}`, all, h.builder.PolicyName))
		if err != nil {
			t.Fatal(err)
		}
		for _, priority := range []string{"p0", "p0", "p1"} {
			before := h.cc.States()
			state := stateattr.SetLabels(resolver.State{}, stateattr.Labels{Priority: priority, Service: "cluster"})
			if err := h.policy.UpdateClientConnState(balancer.ClientConnState{BalancerConfig: c, ResolverState: state}); err != nil {
				t.Fatal(err)
			}
			if n := len(h.builder.Built()); n == 1 && len(before) == 0 {
				h.report(connectivity.Ready, nil)
			} else if published := len(h.cc.States()) > len(before); published != (priority == "p1") {
				t.Errorf("an update with %s published a state = %v", priority, published)
			}
			lbtest.Pick(h.cc.State())
		}
		counts := h.recorder.Counts()
		for labels, want := range map[string]int64{"p0 all cluster": 2, "p1 all cluster": 1} {
			if got := counts["understudy.drop.dropped :/// "+labels]; got != want {
				t.Errorf("%d calls are counted for %s, want %d: %v", got, labels, want, counts)
			}
		}
	})
}

// A category with 0 requests per million must never drop a call. There are ten million draws, so
// that a single wrong number would drop about ten calls.
func TestNothingIsDroppedByZero(t *testing.T) {
	p := &picker{child: shell.Queue, categories: make([]lbconfig.DropCategory, 20), labels: labelsOf("", stateattr.Labels{}, make([]lbconfig.DropCategory, 20)), recorder: &lbtest.Recorder{}}
	for range 500_000 {
		if _, err := p.Pick(balancer.PickInfo{}); !errors.Is(err, balancer.ErrNoSubConnAvailable) {
			t.Fatalf("a call gets %v, want the result of the child", err)
		}
	}
}
