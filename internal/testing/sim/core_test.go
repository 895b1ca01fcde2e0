package sim

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
)

// All calls to the only working endpoint must succeed. With outlier detection, a third may fail,
// because ejected endpoints come back that still fail.
func TestCallsToACoreAreJudged(t *testing.T) {
	for name, test := range map[string]struct {
		answered int
		sees     bool
		both     bool // the core's priority has an endpoint that answers with errors
		long     bool // calls take a minute, and connections to other endpoints are reset meanwhile
		broken   int
	}{
		"all":                        {answered: 100},
		"one fails":                  {answered: 99, broken: 1},
		"a third, with detection":    {answered: 67, sees: true},
		"too many, with detection":   {answered: 60, sees: true, broken: 1},
		"nothing, without detection": {broken: 1},
		"half of a priority works":   {answered: 40, sees: true, both: true},
		"worse than no detection":    {answered: 39, sees: true, both: true, broken: 1},
		"half is always cut short":   {answered: 40, sees: true, long: true},
		"worse than what is cut":     {answered: 39, sees: true, long: true, broken: 1},
	} {
		w := &World{Log: newLog(), known: Truth{flat([]string{firstTier, secondTier})}, conditions: map[string]*condition{firstTier: {up: true}, secondTier: {up: test.both, answer: codes.Internal}}}
		if test.long {
			w.pair, w.judge = &pair{takes: time.Minute}, newJudge(w)
			w.conditions[secondTier] = &condition{up: true, reset: time.Now()}
		}
		w.judgeCore(firstTier, test.answered, 100, test.sees, errors.New("unavailable"))
		if got := len(w.Log.Broken()); got != test.broken {
			t.Errorf("%s: %d broken rules, want %d", name, got, test.broken)
		}
		if !w.marked.all()[markCore] {
			t.Errorf("%s: the world does not count for the mark %q", name, markCore)
		}
	}
}

// Each simulation leaves out half of the faults and none of the repairs.
func TestSwarm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var names []string
		for _, e := range slices.Concat(repairs, disturbances) {
			names = append(names, e.name)
		}
		if !slices.Equal(names, eventNames) {
			t.Errorf("the events are %q, want the names of the marks, %q", names, eventNames)
		}
		different := make(map[string]bool)
		for seed := range uint64(20) {
			drawn, which := drawEvents(Config{}.rand(seed)), ""
			for _, e := range drawn {
				which += e.name + ", "
				if e.weight < 1 {
					t.Errorf("seed %d: %s has weight %d", seed, e.name, e.weight)
				}
			}
			different[which] = true
			if want := (len(disturbances)+1)/2 + len(repairs); len(drawn) != want {
				t.Errorf("seed %d: %d events, want %d", seed, len(drawn), want)
			}
		}
		if len(different) < 20 {
			t.Errorf("%d different swarms of 20 worlds", len(different))
		}
	})
}
