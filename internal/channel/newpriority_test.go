package channel_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/channel/topology"
)

func (h *fleet) countWaiting(d time.Duration) int {
	h.t.Helper()
	waiting := 0
	for range d / (5 * time.Millisecond) {
		result, err := h.cc.State().Picker.Pick(balancer.PickInfo{})
		if errors.Is(err, balancer.ErrNoSubConnAvailable) {
			waiting++
		} else if err == nil {
			h.end(result)
		}
		time.Sleep(5 * time.Millisecond)
		h.settle()
	}
	return waiting
}

func (h *fleet) setPriorities(settings topology.Settings, names ...string) {
	h.t.Helper()
	var targets []target
	for _, name := range names {
		i := slices.IndexFunc(h.targets, func(p target) bool { return p.Name == name })
		if i < 0 {
			h.targets = append(h.targets, target{Name: name, Endpoints: []resolver.Endpoint{{Addresses: []resolver.Address{{Addr: name + "0"}}}}})
			i = len(h.targets) - 1
		}
		targets = append(targets, h.targets[i])
	}
	h.update(joined(h.t, settings, targets))
}

// An update adds a priority above the one in use, and its endpoints do not answer yet. No call
// waits for the new priority. Once the new priority has connected, it gets a share that grows.
func TestNewHighestPriorityDoesNotAnswer(t *testing.T) {
	inFleetWith(t, recommended, func(h *fleet) {
		h.wantCallsTo("before", "a")
		h.pending = setOf("n0")
		h.setPriorities(recommended, "n", "a", "b")
		if n := h.countWaiting(15 * time.Second); n > 0 {
			t.Errorf("%d of 3000 calls waited", n)
		}
		h.pending = nil
		h.settle()
		if counts, _ := h.calls(time.Second); counts["n"] == 0 || counts["n"] > 40 || counts["b"] > 0 {
			t.Errorf("it answers: calls %v, want a small share in n, and the others in a", counts)
		}
		h.calls(30 * time.Second)
		h.wantCallsTo("half a minute later", "n")
	}, 1, 1)
}

func TestReturningPriorityDoesNotDelayCalls(t *testing.T) {
	inFleetWith(t, recommended, func(h *fleet) {
		h.setPriorities(recommended, "b")
		h.wantCallsTo("a is gone", "b")
		h.pending = setOf("a0")
		h.setPriorities(recommended, "a", "b")
		if n := h.countWaiting(15 * time.Second); n > 0 {
			t.Errorf("%d of 3000 calls waited", n)
		}
	}, 1, 1)
}

func (h *fleet) wantCallsTo(what, priority string) {
	h.t.Helper()
	if counts, failed := h.calls(1e9); counts[priority] < 190 || failed > 0 {
		h.t.Errorf("%s: calls %v, %d failed; want them in %s", what, counts, failed, priority)
	}
}

func setOf(endpoints ...string) map[string]bool {
	set := map[string]bool{}
	for _, e := range endpoints {
		set[e] = true
	}
	return set
}
