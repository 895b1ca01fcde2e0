package weightedroundrobin

import "testing"

// "If all endpoints have the same load_balancing_weight, EDF picker degenerates to round_robin
// picker. The order of picked subschannel is purely decided by order_offset." (gRFC A34)
func TestEqualWeightsTakeTurnsInEndpointOrder(t *testing.T) {
	for _, list := range []string{"a b c", "a:7 b:7 c:7", "a:0 b:1 c"} {
		run(t, func(h *harness) {
			h.update("", list)
			h.ready("a", "b", "c")
			h.wantPicks("abcabcabc")
		})
	}
}

// "At the very beginning, deadline of an entry e is equal to 1/e.weight." (gRFC A34)
func TestFirstPickerHasDeadlinesOfSpec(t *testing.T) {
	run(t, func(h *harness) {
		h.update("", "a:1 b:3 c:2")
		h.ready("c", "b", "a")
		// In sixths, the deadline of a is 6, those of b are 2, 4 and 6, and those of c are 3 and 6.
		// For equal deadlines, the first endpoint in the list is picked.
		h.wantPicks("bcbabc" + "bcbabc")
	})
}

// "Endpoints do not have load_balancing_weight is assigned to 1" (gRFC A34)
func TestMissingAndZeroWeightsCountAsOne(t *testing.T) {
	run(t, func(h *harness) {
		h.update("", "a b:0 c:2")
		h.ready("a", "b", "c")
		h.wantPicks("cabc" + "cabc")
	})
}

// "We'd like to udpate EDF priority queue so that new weights applied immediately even endpoints
// list is not changed." (gRFC A34)
func TestWeightChangeAppliesImmediately(t *testing.T) {
	run(t, func(h *harness) {
		h.update("", "a:1 b:1")
		h.ready("a", "b")
		h.wantPicks("abab")
		subConns, states := len(h.cc.SubConns()), len(h.cc.States())
		h.update("", "a:1 b:3")
		h.wantPicks("bbabbbab")
		if n := len(h.cc.SubConns()); n != subConns {
			t.Errorf("%d new connections", n-subConns)
		}
		if n := len(h.cc.States()); n != states+1 {
			t.Errorf("%d states published, want 1", n-states)
		}
	})
}

func TestOrderFollowsUpdate(t *testing.T) {
	run(t, func(h *harness) {
		h.update("", "a b c")
		h.ready("a", "b", "c")
		h.wantPicks("abc")
		h.update("", "c b a")
		h.wantPicks("cbacba")
	})
}
