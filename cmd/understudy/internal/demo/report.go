package demo

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"github.com/understudy-lb/understudy/cmd/understudy/internal/table"
)

// Report is the output with -o json.
type Report struct {
	OK     bool          `json:"ok"`
	Phases []PhaseResult `json:"phases"`
}

// PhaseResult is the result of one phase.
type PhaseResult struct {
	Name   string `json:"name"`
	Calls  int    `json:"calls"`
	Failed int    `json:"failed"`
	// Priority is the highest priority that has answered, or -1.
	Priority int `json:"priority"`
	// FailoverMS is the number of milliseconds from the last kill or the first error to the first
	// answer of the next priority. It is nil without a failover.
	FailoverMS *float64         `json:"failover_ms"`
	Endpoints  []EndpointResult `json:"endpoints"`
	Problems   []string         `json:"problems,omitempty"`

	lastError error
}

// EndpointResult is the result of one endpoint in a phase. Shares are fractions of the answered
// calls.
type EndpointResult struct {
	Address  string  `json:"address"`
	Locality string  `json:"locality"`
	Priority int     `json:"priority"`
	Expected float64 `json:"expected"`
	Measured float64 `json:"measured"`
}

const maxProblems = 5

func (r *PhaseResult) problem(format string, args ...any) {
	if len(r.Problems) < maxProblems {
		r.Problems = append(r.Problems, fmt.Sprintf(format, args...))
	}
}

func (r *Report) printJSON(w io.Writer) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(r)
}

func (r *Report) printTable(out io.Writer) error {
	paint := table.PainterFor(out)
	var w bytes.Buffer
	fmt.Fprintf(&w, "\n%s\n%s\n", table.Format(r.phases()), table.Format(r.shares()))
	if r.OK {
		fmt.Fprintln(&w, paint.Good("ok: every phase went as expected"))
	}
	for _, p := range r.Phases {
		for _, problem := range p.Problems {
			fmt.Fprintf(&w, "%s %s: %s\n", paint.Bad("failed:"), p.Name, problem)
		}
	}
	_, err := out.Write(w.Bytes())
	return err
}

func (r *Report) phases() [][]string {
	rows := [][]string{{"phase", "calls", "failed", "priority", "failover"}}
	for _, p := range r.Phases {
		failover := ""
		if p.FailoverMS != nil {
			failover = fmt.Sprintf("%.1f ms", *p.FailoverMS)
		}
		rows = append(rows, []string{p.Name, fmt.Sprint(p.Calls), fmt.Sprint(p.Failed), fmt.Sprint(p.Priority), failover})
	}
	return rows
}

func (r *Report) shares() [][]string {
	rows := [][]string{{"phase", "endpoint", "priority", "locality", "expected", "measured"}}
	for _, p := range r.Phases {
		name := p.Name
		for _, e := range p.Endpoints {
			rows = append(rows, []string{name, e.Address, fmt.Sprint(e.Priority), e.Locality, table.Percent(e.Expected, 1), table.Percent(e.Measured, 1)})
			name = ""
		}
	}
	return rows
}
