package sim

import (
	"flag"
	"testing"
	"time"
)

var marksFlag = flag.Int("sim.marks", 0, "run so many worlds, half of them of pairs of faults, and require that each mark is reached")

var marks Marks

// TestMarks requires that each mark is reached by at least one of -sim.marks simulations. Half of
// the simulations have pairs of faults. Of the other half, a quarter has an eds: target and a
// quarter has several sources, because some marks can be reached only there.
func TestMarks(t *testing.T) {
	if *marksFlag == 0 {
		return
	}
	all := pairs()
	begin := time.Now()
	for i := range *marksFlag {
		pair := ""
		*kind = []string{"eds", "", "mixed", "", "", "", "", ""}[i%8]
		if i%2 == 1 {
			pair = all[i/2%len(all)]
		}
		live(t, *firstSeed+uint64(i), pair)
	}
	t.Logf("%d worlds of %v in %v:\n%v", *marksFlag, *length, time.Since(begin).Round(time.Second), &marks)
	for _, name := range marks.Unreached() {
		t.Errorf("no world reached: %s", name)
	}
}
