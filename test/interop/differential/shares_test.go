package differential

import (
	"testing"
	"testing/synctest"

	"github.com/understudy-lb/understudy/internal/testing/lbtest"
)

// TestShares tests the row w-shares. Our policy picks children in exact proportion to their
// weights, and gRPC-Go's policy picks at random. In our policy, a new weight takes effect at
// once. In gRPC-Go's policy, it takes effect at the next report of a child.
func TestShares(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := newSides(targetKind)
		defer ours.policy.Close()
		defer theirs.policy.Close()
		for _, command := range []string{"update a=1 b=1", "report a READY", "report b READY", "update a=1 b=3"} {
			runBoth(ours, theirs, command)
		}
		const windows, calls = 20, 400
		for range windows {
			if n := share(ours, "b", calls); n != 300 {
				t.Errorf("ours: b got %d of %d calls, want exactly 300", n, calls)
			}
		}
		// The limits are five standard deviations (224 calls) from one half of 8,000 calls.
		if n := share(theirs, "b", windows*calls); n < 3776 || n > 4224 {
			t.Errorf("theirs: b got %d of %d calls before the next report, want about half", n, windows*calls)
		}
		runBoth(ours, theirs, "report a READY")
		exact := 0
		for range windows {
			n := share(theirs, "b", calls)
			if n < 257 || n > 343 { // five standard deviations
				t.Errorf("theirs: b got %d of %d calls, want about 300", n, calls)
			}
			if n == 300 {
				exact++
			}
		}
		if exact == windows { // the probability of this by chance is 10^-26
			t.Error("theirs: every share was exact, so the row is obsolete")
		}
	})
}

func share(s *side, id string, n int) int {
	got, state := 0, s.cc.State()
	for range n {
		if lbtest.Pick(state) == id {
			got++
		}
	}
	return got
}
