package demo

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func newTestCluster(dead ...string) *cluster {
	c := &cluster{slots: []*slot{
		{locality: "east/a", priority: 0, localityWeight: 3, weight: 2, address: "a1"},
		{locality: "east/a", priority: 0, localityWeight: 3, weight: 1, address: "a2"},
		{locality: "east/b", priority: 0, localityWeight: 1, weight: 1, address: "b"},
		{locality: "west/a", priority: 1, localityWeight: 1, weight: 1, address: "w"},
	}}
	for _, s := range c.slots {
		if !strings.Contains(strings.Join(dead, " "), s.address) {
			s.process = &backend{mode: serving}
		}
	}
	return c
}

func TestExpected(t *testing.T) {
	for dead, want := range map[string][]float64{
		"":          {0.5, 0.25, 0.25, 0},
		"a1":        {0, 0.75, 0.25, 0},
		"a1 a2":     {0, 0, 1, 0},
		"a1 a2 b":   {0, 0, 0, 1},
		"a1 a2 b w": {0, 0, 0, 0},
	} {
		got := newTestCluster(strings.Fields(dead)...).expectedShares()
		for i := range want {
			if got[i] != want[i] {
				t.Errorf("%q dead: shares %v, want %v", dead, got, want)
				break
			}
		}
	}
}

// calls returns calls that begin and end at the given time. In counts, each address is followed by
// its number of calls. Calls to the address "" fail.
func calls(at time.Time, counts ...any) []call {
	var all []call
	for i := 0; i < len(counts); i += 2 {
		for range counts[i+1].(int) {
			c := call{begin: at, end: at, address: counts[i].(string)}
			if c.address == "" {
				c.err = errors.New("lost")
			}
			all = append(all, c)
		}
	}
	return all
}

func TestEvaluateReportsProblems(t *testing.T) {
	now := time.Now()
	for name, test := range map[string]struct {
		counted []call
		want    string // text in the reported problem, or "" for no problem
		before  []call
	}{
		"lost on the way":   {calls(now, "a1", 500, "a2", 250, "b", 250), "2 of 1002 calls failed, although each is retried: lost", calls(now, "", 2)},
		"as it should be":   {calls(now, "a1", 50, "a2", 25, "b", 25), "", nil},
		"within two points": {calls(now, "a1", 485, "a2", 260, "b", 255), "", nil},
		"off by three":      {calls(now, "a1", 47, "a2", 28, "b", 25), "a1 got 47.0 % of the calls, expected 50.0 %", nil},
		"a failed call":     {calls(now, "a1", 50, "a2", 25, "b", 25, "", 1), "1 of 101 calls failed after the phase had settled: lost", nil},
		"wrong priority":    {calls(now, "w", 100), "priority 1 is in use, expected 0", nil},
		"nobody answered":   {nil, "priority -1 is in use, expected 0", nil},
	} {
		r := phase{name: "steady"}.evaluate(newTestCluster(), append(test.before, test.counted...), test.counted)
		problems := strings.Join(r.Problems, "; ")
		if test.want == "" && problems != "" || !strings.Contains(problems, test.want) {
			t.Errorf("%s: problems %q, want %q", name, problems, test.want)
		}
	}
}

func TestFailoverIsMeasuredFromLastKill(t *testing.T) {
	killed := time.Now()
	c := newTestCluster("a1", "a2", "b")
	history := append(calls(killed.Add(-time.Millisecond), "a1", 3), calls(killed.Add(time.Millisecond), "", 2)...)
	history = append(history, calls(killed.Add(5*time.Millisecond), "w", 2)...)
	var r PhaseResult
	r.recordFailover(c, history, killed, true)
	if r.FailoverMS == nil || *r.FailoverMS != 5 || len(r.Problems) != 0 {
		t.Errorf("failover %v, problems %q; want 5 ms and none", r.FailoverMS, r.Problems)
	}
	overlapping := calls(killed.Add(6*time.Millisecond), "", 1)
	overlapping[0].begin = killed
	r = PhaseResult{}
	r.recordFailover(c, append(history, overlapping...), killed, true)
	if len(r.Problems) != 0 {
		t.Errorf("problems %q with a call that began before the first answer, want none", r.Problems)
	}
	r = PhaseResult{}
	r.recordFailover(c, append(history, calls(killed.Add(6*time.Millisecond), "", 1)...), killed, true)
	if !strings.Contains(strings.Join(r.Problems, ""), "a call that began after the first answer from priority 1 failed") {
		t.Errorf("problems %q, want the failed call", r.Problems)
	}
	r = PhaseResult{}
	r.recordFailover(c, history[:3], killed, true)
	if len(r.Problems) != 1 {
		t.Errorf("problems %q, want that nobody answered", r.Problems)
	}
}

// While a priority answers with errors, the channel still sends it a few calls, which may fail. All
// other calls must go to the next priority.
func TestFewErrorsAreAllowed(t *testing.T) {
	now := time.Now()
	c := newTestCluster()
	for _, s := range c.slots[:3] {
		s.process.mode = failing
	}
	p := phase{name: "errors", maxFailed: 0.02}
	if r := p.evaluate(c, nil, calls(now, "w", 98, "", 2)); len(r.Problems) > 0 || r.Priority != 1 {
		t.Errorf("priority %d, problems %q; want 1 and none", r.Priority, r.Problems)
	}
	if r := p.evaluate(c, nil, calls(now, "w", 97, "", 3)); len(r.Problems) != 1 || !strings.HasPrefix(r.Problems[0], "3 of 100 calls failed") {
		t.Errorf("problems %q, want the failed calls", r.Problems)
	}
	var r PhaseResult
	r.recordFailover(c, append(calls(now.Add(time.Millisecond), "w", 1), calls(now.Add(2*time.Millisecond), "", 1)...), now, false)
	if r.FailoverMS == nil || *r.FailoverMS != 1 || len(r.Problems) > 0 {
		t.Errorf("failover %v, problems %q; want 1 ms and none", r.FailoverMS, r.Problems)
	}
}

// A priority that answered with errors counts as recovered only after many successful answers in a
// row.
func TestAwaitStreak(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := &traffic{callEnded: make(chan struct{})}
		send := func(address string, n int) {
			for range n {
				calls.record(call{address: address})
			}
			synctest.Wait()
		}
		done := make(chan error, 1)
		go func() { done <- calls.awaitStreak(t.Context(), 0, []string{"a", "b"}, 10) }()
		send("a", 5)
		send("w", 1)
		send("b", 9)
		select {
		case err := <-done:
			t.Fatalf("ended after nine in a row: %v", err)
		default:
		}
		send("a", 1)
		if err := <-done; err != nil {
			t.Error(err)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errBroken)
		if err := calls.awaitStreak(ctx, 16, nil, 10); !errors.Is(err, errBroken) {
			t.Errorf("error %v, want the cause", err)
		}
	})
}

func TestReportShowsProblems(t *testing.T) {
	r := Report{Phases: []PhaseResult{{Name: "steady", Problems: []string{"all is lost"}}}}
	var out bytes.Buffer
	if err := r.printTable(&out); err != nil {
		t.Error(err)
	}
	if !strings.Contains(out.String(), "failed: steady: all is lost\n") {
		t.Errorf("printed %s", out.String())
	}
	out.Reset()
	if err := r.printJSON(&out); err != nil || !strings.Contains(out.String(), `"failover_ms": null`) || !strings.Contains(out.String(), `"ok": false`) {
		t.Errorf("printed %s, %v", out.String(), err)
	}
}

// The tables fit a terminal of 80 columns even with the longest names and numbers. A failed write
// is an error.
func TestTablesFitTerminal(t *testing.T) {
	slow := 12345.6
	r := Report{OK: true}
	for _, p := range phases {
		result := PhaseResult{Name: p.name, Calls: 1_000_000, Failed: 1_000_000, Priority: -1, FailoverMS: &slow}
		for range 2 {
			result.Endpoints = append(result.Endpoints, EndpointResult{Address: "127.0.0.1:65535", Locality: "us-east/a", Priority: 1, Expected: 1, Measured: 1})
		}
		r.Phases = append(r.Phases, result)
	}
	var out bytes.Buffer
	if err := r.printTable(&out); err != nil {
		t.Error(err)
	}
	for line := range strings.Lines(out.String()) {
		if n := len(strings.TrimSuffix(line, "\n")); n > 80 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	if err := r.printTable(brokenWriter{}); !errors.Is(err, errBroken) {
		t.Errorf("error = %v, want the writer's", err)
	}
}

var errBroken = errors.New("broken")

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errBroken }

func TestDemoEndsInFourMinutes(t *testing.T) {
	longest := 2 * reactionTime // for the phases endpoint-killed and weights-changed
	for _, p := range phases {
		longest += measureWindow
		switch p.name {
		case "endpoint-killed", "weights-changed":
		case "priority-restored", "errors-over":
			longest += recoveryLimit
		default:
			longest += settleLimit
		}
	}
	if longest > 230*time.Second {
		t.Errorf("the phases may take %v, want at most 230 s: the backends start and end in four minutes, too", longest)
	}
}
