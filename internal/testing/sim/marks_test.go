package sim

import (
	"flag"
	"strings"
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

// Unreached returns the marks that no simulation has reached. Each mark must have a unique name and
// say where it is recorded.
func TestUnreachedMarks(t *testing.T) {
	names := make(map[string]bool)
	for _, m := range allMarks() {
		if names[m.name] || m.recordedBy == "" {
			t.Errorf("mark %q occurs twice or is counted nowhere", m.name)
		}
		names[m.name] = true
	}
	var counts Marks
	counts.add(names)
	if missing := counts.Unreached(); len(missing) > 0 {
		t.Errorf("Unreached() = %q after a world that reached all marks", missing)
	}
	delete(names, markHush)
	counts = Marks{}
	counts.add(names)
	counts.add(names)
	if missing := counts.Unreached(); len(missing) != 1 || missing[0] != markHush {
		t.Errorf("Unreached() = %q, want only one", missing)
	}
	if text := counts.String(); !strings.Contains(text, "     0  "+markHush) || !strings.Contains(text, "     2  "+markHealed) {
		t.Errorf("the table does not count one mark twice and the other not at all:\n%s", text)
	}
}
