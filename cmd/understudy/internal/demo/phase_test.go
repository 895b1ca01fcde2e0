package demo

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"time"
)

func newTestCluster(dead ...string) *cluster {
	c := &cluster{backends: []*backend{
		{locality: "east/a", priority: 0, localityWeight: 3, weight: 2, address: "a1"},
		{locality: "east/a", priority: 0, localityWeight: 3, weight: 1, address: "a2"},
		{locality: "east/b", priority: 0, localityWeight: 1, weight: 1, address: "b"},
		{locality: "west/a", priority: 1, localityWeight: 1, weight: 1, address: "w"},
	}}
	for _, b := range c.backends {
		if !strings.Contains(strings.Join(dead, " "), b.address) {
			b.mode.Store(int32(serving))
		}
	}
	return c
}

func TestSharesFollowTheWeightsOfWhatServes(t *testing.T) {
	for dead, want := range map[string][]float64{
		"":          {0.5, 0.25, 0.25, 1},
		"a1":        {0, 0.75, 0.25, 1},
		"a1 a2":     {0, 0, 1, 1},
		"a1 a2 b":   {0, 0, 0, 1},
		"a1 a2 b w": {0, 0, 0, 0},
	} {
		got := newTestCluster(strings.Fields(dead)...).weightShares()
		for i := range want {
			if got[i] != want[i] {
				t.Errorf("%q dead: shares %v, want %v", dead, got, want)
				break
			}
		}
	}
}

// answered returns calls that end at the given time. In counts, each address is followed by its
// number of calls. Calls to the address "" fail.
func answered(at time.Time, counts ...any) []call {
	var all []call
	for i := 0; i < len(counts); i += 2 {
		for range counts[i+1].(int) {
			c := call{end: at, address: counts[i].(string)}
			if c.address == "" {
				c.err = errors.New("lost")
			}
			all = append(all, c)
		}
	}
	return all
}

func TestPhaseReportsProblems(t *testing.T) {
	now := time.Now()
	steady := phase{name: "steady", least: 1, most: 1}
	for name, test := range map[string]struct {
		phase phase
		last  []call
		want  string // text in the reported problem, or "" for no problem
	}{
		"as it should be":       {steady, answered(now, "a1", 250, "a2", 125, "b", 125), ""},
		"within two points":     {steady, answered(now, "a1", 243, "a2", 130, "b", 127), ""},
		"off by three":          {steady, answered(now, "a1", 235, "a2", 140, "b", 125), "a1 got 47.0 % of the calls, expected 50.0 %"},
		"weights do not matter": {phase{least: 1, most: 1, ejects: true}, answered(now, "a1", 235, "a2", 140, "b", 125), ""},
		"a failed call":         {steady, answered(now, "a1", 250, "a2", 125, "b", 124, "", 1), "1 of the last 500 calls failed: lost"},
		"few calls may fail":    {phase{least: 1, most: 1, mayFail: 0.02}, answered(now, "a1", 245, "a2", 123, "b", 122, "", 10), ""},
		"more calls fail":       {phase{least: 1, most: 1, mayFail: 0.02}, answered(now, "a1", 245, "a2", 122, "b", 122, "", 11), "11 of the last 500 calls failed"},
		"wrong priority":        {steady, answered(now, "w", 500), "priority 0 got 0 % of the calls, expected 100 to 100 %"},
		"too full":              {phase{least: 0.1, most: 0.4}, answered(now, "a1", 250, "a2", 125, "b", 125), "priority 0 got 100 % of the calls, expected 10 to 40 %"},
		"half goes elsewhere":   {phase{least: 0.4, most: 1}, answered(now, "a1", 124, "a2", 62, "b", 62, "w", 252), ""},
		"nobody answered":       {phase{}, nil, "only 0 calls have ended"},
	} {
		r := test.phase.evaluate(newTestCluster(), test.last)
		problems := strings.Join(r.Problems, "; ")
		if test.want == "" && problems != "" || !strings.Contains(problems, test.want) {
			t.Errorf("%s: problems %q, want %q", name, problems, test.want)
		}
	}
}

func TestFailoverIsMeasuredUntilTheNextPriorityAnswers(t *testing.T) {
	killed := time.Now()
	all := append(answered(killed, "a1", 3, "", 1), answered(killed.Add(5*time.Millisecond), "w", 997)...)
	var r PhaseResult
	p := phase{failsOver: true}
	p.summarise(&r, newTestCluster("a1", "a2", "b"), all, killed)
	if r.FailoverMS == nil || *r.FailoverMS != 5 || r.Calls != 1001 || r.Failed != 1 || len(r.Problems) != 0 {
		t.Errorf("failover %v, %d calls, %d failed, problems %q; want 5 ms, 1001, 1 and none", r.FailoverMS, r.Calls, r.Failed, r.Problems)
	}
	r = PhaseResult{}
	p.summarise(&r, newTestCluster(), answered(killed, "", 1, "w", 998), killed)
	if len(r.Problems) != 1 || !strings.HasPrefix(r.Problems[0], "1 of 999 calls failed, although each is retried") {
		t.Errorf("problems %q, want the failed call", r.Problems)
	}
}

// What a phase reports is printed after the table, or in the JSON. A failed write is an error.
func TestReportShowsProblems(t *testing.T) {
	r := Report{Phases: []PhaseResult{{Name: "steady", Problems: []string{"all is lost"}}}}
	var out bytes.Buffer
	if err := r.print(Options{Out: &out}); err != nil || out.String() != "failed: steady: all is lost\n" {
		t.Errorf("printed %s, %v", out.String(), err)
	}
	out.Reset()
	if err := r.print(Options{Out: &out, JSON: true}); err != nil || !strings.Contains(out.String(), `"failover_ms": null`) || !strings.Contains(out.String(), `"ok": false`) {
		t.Errorf("printed %s, %v", out.String(), err)
	}
	reader, writer := io.Pipe()
	reader.CloseWithError(io.ErrNoProgress)
	if err := r.print(Options{Out: writer}); !errors.Is(err, io.ErrNoProgress) {
		t.Errorf("error = %v, want the writer's", err)
	}
}

// The rows are aligned, and fit a terminal of 80 columns even with the longest names and numbers.
func TestRowsFitTerminal(t *testing.T) {
	for _, p := range phases {
		r := PhaseResult{Name: p.name, Calls: 1_000_000, Failed: 1000, Priority: -1, FailoverMS: new(1234.5), shares: [2]float64{1, 1}}
		if row := r.row(); len(row) > 80 || strings.Index(row, "1234.5") != strings.Index(header, "failover") {
			t.Errorf("a row that is too long or not aligned:\n%s\n%s", header, row)
		}
	}
}
