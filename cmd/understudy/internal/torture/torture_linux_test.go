package torture

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestTorture runs worlds for the time of -torture.for, and checks the rules.
func TestTorture(t *testing.T) {
	if *tortureFor == 0 {
		t.Log("no world: -torture.for is not given; see make torture")
		return
	}
	if ran, err := inSandbox(); ran {
		if err != nil {
			t.Fatal(err)
		}
		return
	}
	seed := *firstSeed
	if seed == 0 {
		seed = 1 + rand.Uint64N(1<<32)
	}
	box, err := newSandbox(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(box.close)
	counts, skipped := make(map[string]int), make(map[string]int)
	for begin := now(); now()-begin < *tortureFor && !t.Failed(); seed++ {
		runWorld(t, seed, box, counts, skipped)
	}
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		t.Logf("%4d × %s", counts[name], name)
	}
	for _, name := range slices.Sorted(maps.Keys(skipped)) {
		t.Logf("%4d × skipped: %s", skipped[name], name)
	}
}

// runWorld runs the world of a seed. It keeps the event log if a rule was broken.
func runWorld(t *testing.T, seed uint64, box sandbox, counts, skipped map[string]int) {
	t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
		w, err := newWorld(seed, t.TempDir(), box)
		if w != nil {
			defer w.killAll()
		}
		if err != nil {
			t.Fatal(err)
		}
		ends := make(chan struct{})
		go measureDelay(w.judge.slow, ends)
		begin := now()
		err = w.live()
		close(ends)
		calls, failed, judged := w.judge.totals()
		t.Logf("seed %d: %d calls, %d failed, %d judged, in %v", seed, calls, failed, judged, now()-begin)
		for name, n := range w.counts {
			counts[name] += n
		}
		for name, n := range w.skipped {
			skipped[name] += n
		}
		broken := w.log.rulesBroken()
		if err != nil || len(broken) > 0 || *keepLogs {
			path := filepath.Join(os.TempDir(), fmt.Sprintf("understudy-torture-%d.log", seed))
			if err := w.log.write(path); err != nil {
				t.Error(err)
			}
			t.Logf("seed %d: the event log is in %s", seed, path)
		}
		if err != nil {
			t.Error(err)
		}
		for _, line := range broken {
			t.Error(line)
		}
	})
}
