package sim

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/connectivity"

	"github.com/understudy-lb/understudy/internal/text/printable"
)

// A log line is checked even if the policy has truncated the target in it.
func TestLogLineWithTruncatedTarget(t *testing.T) {
	ready := &channel{priorities: []string{"a"}, children: map[string]*childState{"a": {state: connectivity.Ready}}}
	w := &World{Log: newLog(), targetText: "failover:///" + strings.Repeat("x", maxTargetLength), channel: ready, openedAt: time.Now().Add(-time.Hour)}
	w.checkLogLine("warning", "priority: "+printable.Line(w.targetText, maxTargetLength)+": no priority can take calls: x")
	if broken := w.Log.Broken(); len(broken) != 1 || !strings.HasSuffix(broken[0], `"a" is READY`) {
		t.Errorf("broken rules: %q, want that a priority is READY", broken)
	}
}
