package rehearse

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"strings"
	"time"

	"github.com/understudy-lb/understudy/cmd/understudy/internal/table"
	"github.com/understudy-lb/understudy/internal/rehearse"
	"github.com/understudy-lb/understudy/internal/text/printable"
)

// Report is the output with -o json.
type Report struct {
	Rate       float64    `json:"rate"`
	Clients    int        `json:"clients"`
	Priorities []Priority `json:"priorities"`
	Warnings   []string   `json:"warnings"`
	Rows       []Row      `json:"rows"`
	Above      []string   `json:"above_budget"`
}

type Priority struct {
	Endpoints int     `json:"endpoints"`
	Capacity  float64 `json:"capacity"` // calls per second
}

// Row has the results of one scenario.
type Row struct {
	Fault    string    `json:"fault"`
	Calls    int       `json:"calls"`
	Lost     int       `json:"lost"`
	Refused  int       `json:"refused"` // also counted as lost; the client refused them because every priority was full
	Gap      float64   `json:"seconds_without_answer"`
	Normal   *float64  `json:"seconds_until_normal"` // counted from the fault; null if it's not back to normal when the run ends
	Moves    int       `json:"moves"`
	Peak     []float64 `json:"peak_load"`         // one per priority, as a fraction of its capacity
	Attempts float64   `json:"attempts_per_call"` // a refused call counts as 0
}

// Limit is what the budget allows for a row. Anything that isn't set is unlimited.
type Limit struct {
	LostPercent *float64 `json:"lost_percent,omitempty"`
	Gap         *float64 `json:"seconds_without_answer,omitempty"`
	Normal      *float64 `json:"seconds_until_normal,omitempty"`
}

const everyRow = "every row" // key for the limit of rows that don't have their own

func report(w rehearse.World, scenarios []*scenario) *Report {
	r := &Report{Rate: w.Rate, Clients: w.Clients, Above: []string{}}
	var capacity []float64
	var endpoints []int
	for p, servers := range w.Priorities {
		capacity, endpoints = append(capacity, w.Capacity(p)), append(endpoints, len(servers))
		r.Priorities = append(r.Priorities, Priority{len(servers), capacity[p]})
	}
	r.Warnings = append([]string{}, rehearse.Warnings(capacity, endpoints, w.Rate, w.Policy.Overflow, "")...)
	for _, s := range scenarios {
		o := s.outcome
		row := Row{Fault: s.name, Calls: o.Calls, Lost: o.Lost, Refused: o.Refused, Gap: o.Longest.Seconds(), Moves: o.Moves, Peak: o.Peak, Attempts: float64(o.Attempts) / float64(max(1, o.Calls))}
		if o.Normal >= 0 {
			normal := o.Normal.Seconds()
			row.Normal = &normal
		}
		r.Rows = append(r.Rows, row)
	}
	return r
}

func (r *Row) lostPercent() float64 { return 100 * float64(r.Lost) / float64(max(1, r.Calls)) }

func (r *Report) judge(budget map[string]Limit) {
	for i := range r.Rows {
		row := &r.Rows[i]
		limit, own := budget[row.Fault]
		if !own {
			limit = budget[everyRow]
		}
		check := func(what string, got float64, want *float64, unit string) {
			if want != nil && got > *want {
				r.Above = append(r.Above, fmt.Sprintf("%s: %s %.3g%s, want at most %.3g%s", row.Fault, what, got, unit, *want, unit))
			}
		}
		check("lost", row.lostPercent(), limit.LostPercent, " %")
		check("without an answer", row.Gap, limit.Gap, " s")
		if limit.Normal != nil && row.Normal == nil {
			r.Above = append(r.Above, fmt.Sprintf("%s: not normal at the end of the run, want at most %.3g s", row.Fault, *limit.Normal))
		} else if row.Normal != nil {
			check("normal after", *row.Normal, limit.Normal, " s")
		}
	}
}

// The next run should only fail if it's clearly worse than this one. So we allow an extra quarter,
// or more if a different seed alone could make that much of a difference. Rows that weren't played
// keep their limits.
func (r *Report) writeBudget(file string, budget map[string]Limit) error {
	for i := range r.Rows {
		row := &r.Rows[i]
		limit := Limit{LostPercent: looser(row.lostPercent(), 0.5), Gap: looser(row.Gap, 0.5)}
		if row.Normal != nil {
			limit.Normal = looser(*row.Normal, 15)
		}
		budget[row.Fault] = limit
	}
	text, err := json.MarshalIndent(budget, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(text, '\n'), 0o644)
}

func looser(figure, least float64) *float64 {
	limit := math.Ceil(10*max(1.25*figure, figure+least)) / 10
	return &limit
}

func (r *Report) text(paint table.Painter) string {
	var b strings.Builder
	var parts []string
	for p, priority := range r.Priorities {
		parts = append(parts, fmt.Sprintf("p%d has %s and can answer %s", p, printable.Count(priority.Endpoints, "endpoint", "endpoints"), rehearse.Calls(priority.Capacity)))
	}
	fmt.Fprintf(&b, "%s make %s calls/s; %s\n", printable.Count(r.Clients, "client", "clients"), rehearse.Calls(r.Rate), strings.Join(parts, ", "))
	for _, warning := range r.Warnings {
		fmt.Fprintln(&b, paint.Bad(warning))
	}
	header := []string{"fault", "lost calls", "", "no answer", "normal after"}
	for p := range r.Priorities {
		header = append(header, fmt.Sprintf("p%d load", p))
	}
	rows := [][]string{append(header, "moves")}
	for i := range r.Rows {
		row := &r.Rows[i]
		normal := "not in the run"
		if row.Normal != nil {
			normal = seconds(*row.Normal)
		}
		cells := []string{row.Fault, fmt.Sprintf("%10d", row.Lost), fmt.Sprintf("%5.2f %%", row.lostPercent()), seconds(row.Gap), normal}
		for _, peak := range row.Peak {
			cells = append(cells, fmt.Sprintf("%3.0f %%", 100*peak))
		}
		rows = append(rows, append(cells, fmt.Sprintf("%5d", row.Moves)))
	}
	fmt.Fprintf(&b, "\n%s", table.Format(rows))
	for _, text := range r.Above {
		fmt.Fprintln(&b, paint.Bad("above the budget: "+text))
	}
	return b.String()
}

func seconds(s float64) string {
	return time.Duration(s * float64(time.Second)).Round(100 * time.Millisecond).String()
}
