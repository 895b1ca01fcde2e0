package differential

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
)

var schedules = flag.Int("schedules", 300, "how many random schedules each comparison drives")

// generator draws commands, and says which rows of the document explain what is seen.
type generator interface {
	// next returns the next command, given which children there are.
	next(random *rand.Rand, live []string) string
	// explains returns the id of the row by which the two may differ now, in just this
	// way, or "".
	explains(ours, theirs string) string
}

// compare drives both sides with random schedules. Whatever they differ in must be a
// row of the document, and each of wantRows must have been seen.
func compare(t *testing.T, k kind, newGenerator func() generator, wantRows ...string) {
	seen := map[string]int{}
	for seed := range uint64(*schedules) {
		var failure string
		synctest.Test(t, func(*testing.T) {
			failure = compareOnce(k, newGenerator(), rand.New(rand.NewPCG(seed, 1)), seen)
		})
		if failure != "" {
			t.Fatalf("seed %d:\n%s", seed, failure)
		}
	}
	for _, row := range wantRows {
		if seen[row] == 0 {
			t.Errorf("row %s was never seen in %d schedules", row, *schedules)
		}
	}
	t.Logf("%d schedules; differences: %v", *schedules, seen)
}

func compareOnce(k kind, g generator, random *rand.Rand, seen map[string]int) string {
	ours, theirs := both(k)
	defer ours.policy.Close()
	defer theirs.policy.Close()
	var log strings.Builder
	for range 60 {
		command := g.next(random, ours.live())
		gotOurs, gotTheirs := doBoth(ours, theirs, command)
		fmt.Fprintf(&log, "%-32s ours: %s\n", command, gotOurs)
		if gotOurs == gotTheirs {
			continue
		}
		fmt.Fprintf(&log, "%-30s theirs: %s\n", "", gotTheirs)
		row := g.explains(gotOurs, gotTheirs)
		if row == "" {
			return log.String()
		}
		seen[row]++
	}
	return ""
}

// anyOf draws one of several.
func anyOf[T any](random *rand.Rand, values ...T) T { return values[random.IntN(len(values))] }

// stateOf and callsOf take apart what a side shows: "READY a; children a b".
func stateOf(shown string) string { return strings.Fields(shown)[0] }

func callsOf(shown string) string {
	shown, _, _ = strings.Cut(shown, "; children ")
	_, calls, _ := strings.Cut(shown, " ")
	return calls
}

func childrenOf(shown string) string {
	_, children, _ := strings.Cut(shown, "; children ")
	return children
}

// reports are what was last reported by each child.
type reports map[string]string

// forget drops the children that there are no more.
func (r reports) forget(live []string) {
	for name := range r {
		if !slices.Contains(live, name) {
			delete(r, name)
		}
	}
}
