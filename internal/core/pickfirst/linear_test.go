package pickfirst_test

import (
	"errors"
	"slices"
	"testing"

	core "github.com/understudy-lb/understudy/internal/core/pickfirst"
)

// A million addresses fail in order. After an update with new addresses, all of them fail again, in
// reverse order. With a quadratic algorithm, this test would take an hour.
func TestTimeIsLinearInAddresses(t *testing.T) {
	const n = 1_000_000
	refused := errors.New("refused")
	var c core.Core
	from := slices.Repeat([]int{-1}, n)
	_, actions := c.Update(from)
	for i := range n {
		if !slices.Contains(actions, core.Action{Kind: core.Connect, Index: i}) {
			t.Fatalf("after %d failures: %v, want Connect of the next address", i, actions)
		}
		actions = c.Report(0, i, core.TransientFailure, refused)
	}
	if c.Phase() != core.PhaseRetrying {
		t.Fatalf("phase %v after all addresses failed, want retrying", c.Phase())
	}
	c.Update(slices.Repeat([]int{-1}, n))
	for range n - 1 {
		c.TimerFired()
	}
	for i := range n {
		actions = c.Report(0, n-1-i, core.TransientFailure, refused)
	}
	if !slices.Contains(actions, core.Action{Kind: core.Resolve}) {
		t.Errorf("the last failure returns %v, want the end of the pass", actions)
	}
}
