//go:build torture

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

func TestTorture(t *testing.T) {
	if *worldsFor == 0 {
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
	total := totals{faults: make(map[string]int), skipped: make(map[string]int)}
	begin := now()
	for first := true; first || now()-begin < *worldsFor && !t.Failed(); first = false {
		runWorld(t, seed, box, &total)
		seed++
	}
	for _, name := range slices.Sorted(maps.Keys(total.faults)) {
		t.Logf("%4d × %s", total.faults[name], name)
	}
	for _, name := range slices.Sorted(maps.Keys(total.skipped)) {
		t.Logf("%4d × skipped: %s", total.skipped[name], name)
	}
	t.Logf("worlds: %d, calls: %d, failed: %d, judged: %d, broken rules: %d", total.worlds, total.calls, total.failed, total.judged, total.broken)
}

type totals struct {
	faults, skipped                       map[string]int
	worlds, calls, failed, judged, broken int
}

func (a *totals) add(w *world, calls, failed, judged, broken int) {
	a.worlds++
	a.calls += calls
	a.failed += failed
	a.judged += judged
	a.broken += broken
	for name, n := range w.counts {
		a.faults[name] += n
	}
	for name, n := range w.skipped {
		a.skipped[name] += n
	}
}

func runWorld(t *testing.T, seed uint64, box sandbox, total *totals) {
	t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
		w, err := newWorld(seed, t.TempDir(), box)
		if w != nil {
			defer w.killAll()
		}
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan struct{})
		go measureDelay(w.judge.addPulse, done)
		begin := now()
		err = w.run()
		close(done)
		calls, failed, judged := w.judge.totals()
		t.Logf("seed %d: %d calls, %d failed, %d judged, in %v", seed, calls, failed, judged, now()-begin)
		broken := w.log.rulesBroken()
		total.add(w, calls, failed, judged, len(broken))
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
