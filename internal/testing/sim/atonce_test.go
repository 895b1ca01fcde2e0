package sim

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/understudy-lb/understudy/internal/testing/prioritymodel"
)

// If an update and a failover happen at the same time in a world with standbys, their order is not
// judged until the failover timers of the children created at that time have expired.
func TestWhetherAnUpdateOrAFailoverWasFirstIsNotJudged(t *testing.T) {
	for name, test := range map[string]struct {
		standbys int
		steps    string // seconds and events
		want     bool
	}{
		"failover, update":  {1, "1 failover, 1 update, 11 failover, 13 judged", true},
		"update, failover":  {1, "1 update, 1 failover, 11 failover, 13 judged", true},
		"no standbys":       {0, "1 failover, 1 update, 11 failover, 13 judged", false},
		"one after another": {1, "1 failover, 2 update, 11 failover, 13 judged", false},
		"timer expired":     {1, "1 failover, 1 update, 11 failover, 22 judged", false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := &channel{
					w:          &World{settings: settings{failover: 10 * time.Second, standbys: test.standbys}},
					priorities: []string{"a", "b"},
					told:       tree{priorities: []string{"a", "b"}},
					truth:      make(Truth, 2),
					model:      prioritymodel.New(nil),
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
					}
				}
				if got := c.atOnce(); got != test.want {
					t.Errorf("atOnce() = %v, want %v", got, test.want)
				}
			})
		})
	}
}

// If two reports arrive at the same time in a world with a failback delay, their order is not
// judged while the delay lasts. A single report has no order, and the order of reports that arrive
// at different times is known.
func TestWhichOfTwoWasFirstIsNotJudged(t *testing.T) {
	for name, test := range map[string]struct {
		failback time.Duration
		slow     time.Duration // slowStart
		second   time.Duration // time of the second report after the update
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
