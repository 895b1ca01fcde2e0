package sim

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/connectivity"

	"github.com/understudy-lb/understudy/internal/printable"
)

// A line is checked even if its target is so long that the product truncates it.
func TestALineOfALongTarget(t *testing.T) {
	ready := &channel{priorities: []string{"a"}, children: map[string]*seen{"a": {state: connectivity.Ready}}}
	w := &World{Log: newLog(), shown: "failover:///" + strings.Repeat("x", longestTarget), channel: ready, openedAt: time.Now().Add(-time.Hour)}
	w.said("warning", "priority: "+printable.Line(w.shown, longestTarget)+": no priority can take calls: x")
	if broken := w.Log.Broken(); len(broken) != 1 || !strings.HasSuffix(broken[0], `"a" is READY`) {
		t.Errorf("broken rules: %q, want that a priority is READY", broken)
	}
}
