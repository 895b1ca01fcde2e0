package differential

import (
	"testing"
	"testing/synctest"

	"github.com/understudy-lb/understudy/internal/testing/lbtest"
)

var targetRows = []row{
	{"w-sticky", targetKind, []step{
		{command: "update a=1 b=1"},
		{command: "report a TRANSIENT_FAILURE"},
		{command: "report b TRANSIENT_FAILURE", ours: "TRANSIENT_FAILURE fail: a refused, fail: b refused; children a b"},
		{command: "report a CONNECTING",
			ours:   "TRANSIENT_FAILURE fail: a refused, fail: b refused; children a b",
			theirs: "TRANSIENT_FAILURE fail: b refused, queue; children a b"},
		{command: "report a CONNECTING",
			ours:   "TRANSIENT_FAILURE fail: a refused, fail: b refused; children a b",
			theirs: "CONNECTING queue; children a b"},
		{command: "report a READY", ours: "READY a; children a b"},
	}},
	{"w-idle", targetKind, []step{
		{command: "update a=1 b=1"},
		{command: "report a IDLE"},
		{"report b IDLE", "IDLE fail: a idle, fail: b idle; children a b", "IDLE queue; children a b"},
		{"report b TRANSIENT_FAILURE", "IDLE fail: a idle; children a b", "IDLE queue; children a b"},
	}},
	{"w-wake", targetKind, []step{
		{command: "update a=1 b=1"},
		{command: "report a IDLE"}, // b is CONNECTING
		{"ask a", "a: 1 updates, 1 to exit idle, 0 errors", "a: 1 updates, 0 to exit idle, 0 errors"},
		{command: "report a READY"},
		{command: "report b IDLE", ours: "READY a; children a b"},
		{"ask b", "b: 1 updates, 1 to exit idle, 0 errors", "b: 1 updates, 0 to exit idle, 0 errors"},
	}},
	{"w-type", targetKind, []step{
		{command: "update a=1"},
		{command: "report a READY"},
		{"update a:other=1", "READY a; children a a:other", "CONNECTING queue; children a:other"},
		{command: "report a:other READY", ours: "READY a:other; children a:other"},
	}},
	{"w-refused", targetKind, []step{
		{command: "refuse a"},
		{"update a=1", "TRANSIENT_FAILURE fail: no good; children a; update fails", "CONNECTING queue; children a"},
	}},
	{"w-no-child", targetKind, []step{
		{"resolver-error", "TRANSIENT_FAILURE fail: no such host; children ", "IDLE no picker; children "},
	}},
	{"w-no-config", targetKind, []step{
		{"update-without", "TRANSIENT_FAILURE fail: no configuration; children ; update fails", "IDLE no picker; children ; update fails"},
		{command: "update a=1", ours: "CONNECTING queue; children a"},
		{command: "update-without", ours: "CONNECTING queue; children a; update fails"},
	}},
	{"w-config", targetKind, []step{
		{`parse {"targets": {"a": {"weight": 0, "childPolicy": [{"STUB": {}}]}}}`, "rejected", "accepted"},
		{`parse {"targets": {"a": {"weight": 1}}}`, "rejected", "accepted"},
		{`parse {"targets": {"a": {"weight": 4294967295, "childPolicy": [{"STUB": {}}]}, "b": {"weight": 1, "childPolicy": [{"STUB": {}}]}}}`, "rejected", "accepted"},
		{command: `parse {"targets": {"a": {"weight": 4294967296, "childPolicy": [{"STUB": {}}]}}}`, ours: "rejected"},
		{command: `parse {}`, ours: "accepted"},
	}},
}

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
