//go:build torture

package torture

import (
	"slices"
	"testing"
	"time"
)

// A seed determines its schedule, and different seeds have different schedules. The healthy host
// has no faults, and no subject has two faults at the same time. All kinds of faults are drawn.
func TestSchedules(t *testing.T) {
	drawn, before := make(map[string]int), ""
	for seed := range uint64(300) {
		s := draw(seed, 35*time.Second, "")
		if again := draw(seed, 35*time.Second, ""); s.String() != again.String() {
			t.Fatalf("seed %d draws two schedules:\n%v\n%v", seed, s, again)
		}
		if s.String() == before {
			t.Errorf("seeds %d and %d draw the same schedule", seed-1, seed)
		}
		before = s.String()
		busyUntil := make(map[string]time.Duration)
		for _, f := range s.faults {
			drawn[f.name]++
			for _, name := range f.subjects {
				if name == s.healthyHost || busyUntil[name] > f.start {
					t.Errorf("seed %d: %v at %v: the core is %s, and another fault lasts until %v", seed, f, f.start, s.healthyHost, busyUntil[name])
				}
				busyUntil[name] = f.end()
			}
		}
		if !slices.Contains(append(s.initial.allHosts(), s.final.allHosts()...), s.healthyHost) {
			t.Errorf("seed %d: the core %s is not published", seed, s.healthyHost)
		}
	}
	for _, k := range kinds {
		if drawn[k.name] < 20 {
			t.Errorf("%q was drawn %d times in 300 worlds, want at least 20", k.name, drawn[k.name])
		}
	}
}
