package rehearse

import (
	"runtime"
	"strconv"
	"testing"
)

// At rest, a world with many localities is played in linear memory: explain of a file with three
// thousand took five minutes.
func TestRestOfManyLocalities(t *testing.T) {
	allocated := func(localities int) uint64 {
		w := World{Priorities: make([][]Server, 2), Drop: make([]float64, 2), Policy: Recommended()}
		for p := range w.Priorities {
			for l := range localities {
				w.Priorities[p] = append(w.Priorities[p], Server{Weight: 1, Locality: strconv.Itoa(l), LocalityWeight: uint32(1 + l%2)})
			}
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		uses := Rest(w)
		runtime.ReadMemStats(&after)
		for p := range 2 {
			if got, want := uses[p].Shares[1], 2/(1.5*float64(localities)); uses[p].Priority != p || got < 0.999*want || got > 1.001*want {
				t.Errorf("after %d faults priority %d is used, and its second server takes %v, want %v", p, uses[p].Priority, got, want)
			}
		}
		return after.TotalAlloc - before.TotalAlloc
	}
	if few, many := allocated(200), allocated(800); many > 8*few {
		t.Errorf("%d bytes for 200 localities, and %d for 800", few, many)
	}
}
