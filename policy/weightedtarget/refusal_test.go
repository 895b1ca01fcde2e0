package weightedtarget

import (
	"testing"

	"google.golang.org/grpc/connectivity"
)

func TestReportsOfRetainedChildAreNotPublished(t *testing.T) {
	inBubble(t, func(t *testing.T, h *harness) {
		h.update("a=1 b=1", keep)
		h.report("b", connectivity.Ready)
		h.update("b=1", keep)
		before := len(h.cc.States())
		for _, state := range []connectivity.State{connectivity.Ready, connectivity.Connecting, connectivity.TransientFailure, connectivity.Ready} {
			h.report("a", state)
		}
		if n := len(h.cc.States()) - before; n != 0 {
			t.Errorf("published %d states, want none", n)
		}
	})
}
