package sim

import (
	"flag"
	"strings"
	"testing"
	"time"
)

var marksFlag = flag.Int("sim.marks", 0, "run so many worlds, half of them of pairs of faults, and require that each mark is reached")

var marks Marks

// TestMarks requires that enough simulations reach each mark. Half of them have pairs of faults. A
// quarter of the others has an eds: target and a quarter a list of sources, because some bounds
// exist only there.
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

// A mark that no simulation has reached is reported. Each mark has a unique name and says where it
// is counted.
func TestMissingMarks(t *testing.T) {
	names := make(map[string]bool)
	for _, m := range allMarks() {
		if names[m.name] || m.where == "" {
			t.Errorf("mark %q occurs twice or is counted nowhere", m.name)
		}
		names[m.name] = true
	}
	var some Marks
	some.add(names)
	if missing := some.Unreached(); len(missing) > 0 {
		t.Errorf("Unreached() = %q after a world that reached all marks", missing)
	}
	delete(names, rowMark(5))
	some = Marks{}
	some.add(names)
	some.add(names)
	if missing := some.Unreached(); len(missing) != 1 || missing[0] != rowMark(5) {
		t.Errorf("Unreached() = %q, want only row 5", missing)
	}
	if text := some.String(); !strings.Contains(text, "     0  "+rowMark(5)) || !strings.Contains(text, "     2  "+rowMark(4)) {
		t.Errorf("the table does not count row 4 twice and row 5 not at all:\n%s", text)
	}
}
