package sim

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
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

// A channel that opens while a Service is deleted may log that it found no endpoints.
func TestALineAboutADeletedService(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &kube{deleted: time.Now()}
		w := &World{Log: newLog(), source: &mixed{parts: []mixedPart{{Source: k, tiers: 1}}}, truth: Truth{flat([]string{firstTier})}}
		line := "failover: k8s://sim/a: Service a.sim has no pods that serve: no call can be made"
		w.said("warning", line)
		if broken := w.Log.Broken(); len(broken) > 0 {
			t.Errorf("broken rules: %q, want none while the Service is deleted", broken)
		}
		time.Sleep(time.Hour)
		w.said("warning", line)
		if broken := w.Log.Broken(); len(broken) != 1 {
			t.Errorf("broken rules: %q, want that endpoints can take calls", broken)
		}
	})
}

// Failures before a pause of 15 minutes may have been forgotten together with the child.
func TestOnlyFailuresSinceThePauseMustEject(t *testing.T) {
	for _, test := range []struct {
		pause time.Duration
		want  string
	}{{time.Second, "6 calls in a row failed, and it is not ejected"}, {20 * time.Minute, ""}} {
		at := time.Now()
		c := &condition{up: true, answer: codes.Unavailable, since: at.Add(-time.Hour)}
		for i := range 6 {
			if i == 1 {
				at = at.Add(test.pause)
			}
			c.ended = append(c.ended, ending{at, at, true})
		}
		w := &World{}
		if got := w.overdue(c, byTarget, 1); got != test.want {
			t.Errorf("with a pause of %v: %q, want %q", test.pause, got, test.want)
		}
	}
}
