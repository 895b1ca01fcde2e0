package weightedtarget

import (
	"testing"

	"google.golang.org/grpc/connectivity"

	"github.com/understudy-lb/understudy/internal/testing/lbtest"
)

func TestPositionsOutlivePickers(t *testing.T) {
	for _, start := range []string{"spec", "random"} {
		inBubble(t, func(t *testing.T, h *harness) {
			options := `, "startPoint": "` + start + `"`
			h.update("a=1 b=5 c=10", options)
			for _, name := range []string{"a", "b", "c"} {
				h.report(name, connectivity.Ready)
			}
			counts := map[string]int{}
			for range 1600 {
				h.update("a=1 b=5 c=10", options)
				counts[lbtest.Pick(h.cc.State())]++
			}
			for name, want := range map[string]int{"a": 100, "b": 500, "c": 1000} {
				if diff := counts[name] - want; diff < -1 || diff > 1 {
					t.Errorf("%s: %s got %d calls, want %d", start, name, counts[name], want)
				}
			}
		})
	}
}

// With startPoint "spec", the first call of every client must go to the child with the largest
// weight. With "random", the first calls of many clients must follow the weights.
func TestFirstPicksFollowStartPoint(t *testing.T) {
	const clients = 400
	first := func(options string) (heavy int) {
		for range clients {
			inBubble(t, func(_ *testing.T, h *harness) {
				h.update("a=1 b=3", options)
				h.report("a", connectivity.Ready)
				h.report("b", connectivity.Ready)
				if lbtest.Pick(h.cc.State()) == "b" {
					heavy++
				}
			})
		}
		return heavy
	}
	for _, options := range []string{"", `, "startPoint": "spec"`} {
		if heavy := first(options); heavy != clients {
			t.Errorf("%q: %d of %d first picks go to the heavier child, want all", options, heavy, clients)
		}
	}
	// 300 is expected, and the bounds are 5 standard deviations from it.
	if heavy := first(`, "startPoint": "random"`); heavy < 256 || heavy > 344 {
		t.Errorf("random: %d of %d first picks go to 3 of 4 of the weight, want about 300", heavy, clients)
	}
}
