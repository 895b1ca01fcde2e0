package sim

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/connectivity"

	"github.com/understudy-lb/understudy/internal/testing/prioritymodel"
)

// If an update and a failover happen at the same time, the model and the policy may differ until
// the failover timers of the new children have fired.
func TestOrderOfUpdateAndFailoverIsNotChecked(t *testing.T) {
	for name, test := range map[string]struct {
		standbys int
		steps    string // the steps, each as a time in seconds and an event
		want     bool
	}{
		"failover, update":  {1, "1 failover, 1 update, 11 failover, 13 judged", true},
		"update, failover":  {1, "1 update, 1 failover, 11 failover, 13 judged", true},
		"no standbys":       {0, "1 failover, 1 update, 11 failover, 13 judged", false},
		"one after another": {1, "1 failover, 2 update, 11 failover, 13 judged", false},
		"timer expired":     {1, "1 failover, 1 update, 11 failover, 22 judged", false},
		"early child":       {1, "1 update, 1 report, 13 judged", true},
		"later child":       {1, "1 update, 2 report, 13 judged", false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := &channel{
					w:                &World{settings: settings{failoverTimeout: 10 * time.Second, warmStandby: test.standbys}},
					priorities:       []string{"a", "b"},
					update:           tree{priorities: []string{"a", "b"}},
					truth:            make(EndpointSet, 2),
					model:            prioritymodel.New(nil),
					unhandledReports: make(map[string]prioritymodel.Report),
				}
				begin := time.Now()
				for step := range strings.SplitSeq(test.steps, ", ") {
					seconds, action, _ := strings.Cut(step, " ")
					offset, err := time.ParseDuration(seconds + "s")
					if err != nil {
						t.Fatal(err)
					}
					sleep(time.Until(begin.Add(offset)))
					switch action {
					case "failover":
						c.checkFailover("p0 a", "p1 b")
					case "update":
						c.beginUpdate()
					case "report": // of a child that the model has not created
						c.reportToModel(prioritymodel.Report{State: prioritymodel.Connecting, Text: "z"})
					}
				}
				if got := c.mayDifferByOrder(); got != test.want {
					t.Errorf("atOnce() = %v, want %v", got, test.want)
				}
			})
		})
	}
}

// Calls must not leave a READY child for a higher child that is CONNECTING.
func TestFailbackToConnectingChild(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &World{Log: newLog()}
		c := &channel{
			w: w, priorities: []string{"a", "b", "c"}, update: tree{priorities: []string{"a", "b", "c"}}, truth: make(EndpointSet, 0),
			children: map[string]*childState{"a": {state: failing}, "b": {state: connectivity.Connecting}, "c": {state: connectivity.Ready}},
		}
		sleep(time.Minute)
		if c.checkFailover("p2 c", "p1 b"); len(w.Log.broken) == 0 {
			t.Error("no rule is broken, want one")
		}
	})
}

// At the time of an update, a log line may name a priority of the old or of the new list.
func TestLogLineAtTimeOfUpdate(t *testing.T) {
	for name, test := range map[string]struct {
		elapsed time.Duration
		broken  bool
	}{
		"during the update": {0, false},
		"after the update":  {time.Second, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begin := time.Now()
				weights := map[string]map[string]uint32{"old": {"sim/b": 1}, "new": {"sim/b": 1}}
				c := &channel{
					priorities: []string{"a", "new"}, update: tree{priorities: []string{"a", "new"}, weights: weights},
					previousPriorities: []string{"a", "old"}, previousUpdate: tree{priorities: []string{"a", "old"}, weights: weights},
					children: map[string]*childState{
						"a":   {state: connectivity.Connecting, changedAt: begin},
						"new": {state: failing, changedAt: begin},
						"old": {state: connectivity.Connecting, changedAt: begin},
					},
				}
				w := &World{settings: settings{failoverTimeout: 10 * time.Second}, channel: c, openedAt: begin, targetText: "target"}
				sleep(10 * time.Second)
				c.updatedAt = time.Now()
				sleep(test.elapsed)
				line := []string{"", "target", "move", "1", "sim/b", "0", "a", "CONNECTING", "10 s", "p1 sim/b: did not connect within 10 s"}
				if problem := w.failoverLine(line); (problem != "") != test.broken {
					t.Errorf("failoverLine reports %q, want a broken rule: %v", problem, test.broken)
				}
			})
		})
	}
}
