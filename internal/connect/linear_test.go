package connect_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/understudy-lb/understudy/internal/connect"
)

// A million addresses that fail in order, and then, under the next list, all at the
// end and backwards. Anything quadratic would take an hour.
func TestTimeIsLinearInAddresses(t *testing.T) {
	const n = 1_000_000
	refused := errors.New("refused")
	var core connect.Core
	from := slices.Repeat([]int{-1}, n)
	_, actions := core.Update(from)
	for i := range n {
		if !slices.Contains(actions, connect.Action{Kind: connect.Connect, Index: i}) {
			t.Fatalf("after %d failures: %v, want to connect to the next", i, actions)
		}
		actions = core.Report(i, connect.TransientFailure, refused)
	}
	if core.Phase() != connect.PhaseRetrying {
		t.Fatalf("in phase %v after all failed", core.Phase())
	}
	core.Update(slices.Repeat([]int{-1}, n))
	for range n - 1 {
		core.TimerFired()
	}
	for i := range n {
		actions = core.Report(n-1-i, connect.TransientFailure, refused)
	}
	if !slices.Contains(actions, connect.Action{Kind: connect.Resolve}) {
		t.Errorf("the last failure gives %v, want the end of the pass", actions)
	}
}
