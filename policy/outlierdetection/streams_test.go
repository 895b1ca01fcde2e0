package outlierdetection

import (
	"testing"
	"time"
)

// Only one of several endless streams to an endpoint counts as answered. Otherwise, streams would
// hide that calls fail: one of ten calls may fail before an endpoint counts as failed.
func TestOnlyOneStreamCountsAsAnswered(t *testing.T) {
	inBubble(t, func(h *harness) {
		h.Update(reportEmptiedConfig(), []string{"a"})
		h.fail("a")
		h.wantReceived("tier emptied")
		h.Advance(5 * time.Second)
		for range 10 {
			h.Begin("a", false)
		}
		h.Advance(6 * time.Second)
		h.wantReceived("tier half-open")
		h.Call("a", false)
		h.Advance(10 * time.Second)
		h.wantReceived()
	})
}
