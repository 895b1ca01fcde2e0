package sim

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/connectivity"

	"github.com/understudy-lb/understudy/internal/shell"
	"github.com/understudy-lb/understudy/internal/testing/prioritymodel"
)

// An update and a failover happen at the same time. The model and the policy may differ until the
// failover timers of the new children have fired.
func TestWhetherAnUpdateOrAFailoverWasFirstIsNotJudged(t *testing.T) {
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
					w:          &World{settings: settings{failover: 10 * time.Second, standbys: test.standbys}},
					priorities: []string{"a", "b"},
					update:     tree{priorities: []string{"a", "b"}},
					truth:      make(Truth, 2),
					model:      prioritymodel.New(nil),
					unheard:    make(map[string]prioritymodel.Report),
				}
				begin := time.Now()
				for step := range strings.SplitSeq(test.steps, ", ") {
					seconds, what, _ := strings.Cut(step, " ")
					at, err := time.ParseDuration(seconds + "s")
					if err != nil {
						t.Fatal(err)
					}
					pass(time.Until(begin.Add(at)))
					switch what {
					case "failover":
						c.failover("p0 a", "p1 b")
					case "update":
						c.updating()
					case "report": // a report of a child that the model does not have
						c.report(prioritymodel.Report{State: prioritymodel.Connecting, Text: "z"})
					}
				}
				if got := c.atOnce(); got != test.want {
					t.Errorf("atOnce() = %v, want %v", got, test.want)
				}
			})
		})
	}
}

// Two children report at the same time. With a failback delay, the order of the reports does not
// count until the delay is over.
func TestWhichOfTwoWasFirstIsNotJudged(t *testing.T) {
	for name, test := range map[string]struct {
		failback time.Duration
		slow     time.Duration
		second   time.Duration // time between the update and the second report
		later    time.Duration // time until the result is judged
		want     bool
	}{
		"same instant":      {failback: time.Minute, later: 3 * time.Second, want: true},
		"delay expired":     {failback: time.Minute, later: 61 * time.Second},
		"without a delay":   {slow: time.Minute, later: 3 * time.Second},
		"one after another": {failback: time.Minute, second: time.Millisecond, later: 3 * time.Second},
		"end of the delay":  {failback: time.Minute, later: time.Minute, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				now := time.Now()
				c := &channel{
					w:          &World{settings: settings{failback: test.failback, slowStart: test.slow}},
					lastUpdate: now,
					priorities: []string{"a", "b"},
					children:   map[string]*seen{"a": {since: now}, "b": {since: now.Add(test.second)}},
				}
				pass(test.later)
				if got := c.atOnce(); got != test.want {
					t.Errorf("atOnce() = %v, want %v", got, test.want)
				}
			})
		})
	}
}

// A failover from a READY child up to a CONNECTING one is an error, except where gRFC A56 itself
// chooses it.
func TestAFailoverUpToAConnectingChild(t *testing.T) {
	ready := func(condition shell.Condition) *seen {
		return &seen{state: connectivity.Ready, tier: shell.Tier{Condition: condition, ReadyPart: 1}}
	}
	for name, test := range map[string]struct {
		above, left *seen
		broken      bool
	}{
		"the child in use answers":         {&seen{state: failing}, ready(shell.Usable), true},
		"the child in use fails its calls": {&seen{state: failing}, ready(shell.HalfOpen), false},
		"so does one above":                {ready(shell.Emptied), ready(shell.HalfOpen), true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &World{Log: newLog()}
				c := &channel{
					w: w, priorities: []string{"a", "b", "c"}, update: tree{priorities: []string{"a", "b", "c"}}, truth: make(Truth, 0),
					children: map[string]*seen{"a": test.above, "b": {state: connectivity.Connecting}, "c": test.left},
				}
				pass(time.Minute)
				c.failover("p2 c", "p1 b")
				if broken := len(w.Log.broken) > 0; broken != test.broken {
					t.Errorf("broken rules: %q, want some: %v", w.Log.broken, test.broken)
				}
			})
		})
	}
}

// In the instant of an update, a log line may name a priority from before or after the update.
func TestWhichOfTwoPrioritiesALineNamesIsNotJudged(t *testing.T) {
	for name, test := range map[string]struct {
		later  time.Duration
		broken bool
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
					before: []string{"a", "old"}, updateBefore: tree{priorities: []string{"a", "old"}, weights: weights},
					children: map[string]*seen{
						"a":   {state: connectivity.Connecting, since: begin},
						"new": {state: failing, since: begin},
						"old": {state: connectivity.Connecting, since: begin},
					},
				}
				w := &World{settings: settings{failover: 10 * time.Second}, channel: c, openedAt: begin, shown: "target"}
				pass(10 * time.Second)
				c.lastUpdate = time.Now()
				pass(test.later)
				line := []string{"", "target", "move", "1", "sim/b", "0", "a", "CONNECTING", "10 s", "p1 sim/b: did not connect within 10 s"}
				if wrong := w.failoverLine(line); (wrong != "") != test.broken {
					t.Errorf("failoverLine reports %q, want a broken rule: %v", wrong, test.broken)
				}
			})
		})
	}
}
