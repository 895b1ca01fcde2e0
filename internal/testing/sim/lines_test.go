package sim

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
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

// A channel may log that a Service has no endpoints while the Service is deleted.
func TestLogLineAboutDeletedService(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &kube{deleted: time.Now()}
		w := &World{Log: newLog(), source: &mixed{entries: []mixedEntry{{Source: k, priorities: 1}}}, truth: EndpointSet{flat([]string{firstTier})}}
		line := "failover: k8s://sim/a: Service a.sim has no pods that serve: no calls can be made"
		w.checkLogLine("warning", line)
		if broken := w.Log.Broken(); len(broken) > 0 {
			t.Errorf("broken rules: %q, want none while the Service is deleted", broken)
		}
		time.Sleep(time.Hour)
		w.checkLogLine("warning", line)
		if broken := w.Log.Broken(); len(broken) != 1 {
			t.Errorf("broken rules: %q, want that endpoints can take calls", broken)
		}
	})
}

// If an endpoint got no calls for 15 minutes, its child and the counts of earlier failures may have
// been removed.
func TestFailuresBeforePauseNeedNotEject(t *testing.T) {
	for _, test := range []struct {
		pause time.Duration
		want  string
	}{{time.Second, "6 calls in a row failed, and it is not ejected"}, {20 * time.Minute, ""}} {
		at := time.Now()
		c := &condition{up: true, code: codes.Unavailable, changedAt: at.Add(-time.Hour)}
		for i := range 6 {
			if i == 1 {
				at = at.Add(test.pause)
			}
			c.attempts = append(c.attempts, attempt{at, at, true, false})
		}
		w := &World{}
		if got := w.missingEjection(c, targetDetection, 1); got != test.want {
			t.Errorf("with a pause of %v: %q, want %q", test.pause, got, test.want)
		}
	}
}
