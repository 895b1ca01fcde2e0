package tally

import (
	"fmt"
	"strings"
	"testing"
)

func TestNumberOfLabelsIsLimited(t *testing.T) {
	var b Bound
	for _, target := range []string{"one", "another"} {
		got := make(map[Labels]bool)
		for round := range 2 {
			for i := range 10_000 {
				given := Labels{fmt.Sprint("p", i), "", "shop"}
				counted := b.Limit(target, given)
				if i < MaxCombinations && counted != given {
					t.Fatalf("round %d: Of(%v) = %v, want it unchanged", round, given, counted)
				}
				got[counted] = true
			}
		}
		if len(got) != MaxCombinations+1 || !got[Labels{Other, "", Other}] {
			t.Errorf("%d different results, want %d and one for all others", len(got), MaxCombinations)
		}
	}
}

func TestLongLabelIsReplaced(t *testing.T) {
	var b Bound
	if got := b.Limit("", Labels{strings.Repeat("x", maxLength+1), "a"}); got != (Labels{Other, Other}) {
		t.Errorf("Of = %v for a label that is too long", got)
	}
	if fits := (Labels{strings.Repeat("x", maxLength)}); b.Limit("", fits) != fits {
		t.Error("a label of the maximum length is replaced")
	}
}
