package explain

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/understudy-lb/understudy/cmd/understudy/internal/table"
)

func (r *Result) printJSON(w io.Writer) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(r)
}

// printTable prints the tree, a line for each endpoint: what is the same as in the
// line above is left out.
func (r *Result) printTable(w io.Writer, cluster string) {
	paint := table.PainterFor(w)
	if cluster != "" {
		fmt.Fprintf(w, "cluster %s: ", cluster)
	}
	if r.Priority != nil {
		fmt.Fprintf(w, "calls go to priority %d\n\n", *r.Priority)
	} else {
		fmt.Fprintln(w, paint.Bad("calls fail"))
		fmt.Fprintln(w)
	}
	t := table.Table{Columns: []table.Column{
		{Title: "priority", Align: table.Right},
		{Title: "locality"},
		{Title: "weight", Align: table.Right},
		{Title: "endpoint"},
		{Title: "weight", Align: table.Right},
		{Title: "share", Align: table.Right},
		{Title: ""},
	}}
	var last Endpoint
	for i, e := range r.Endpoints {
		priority, locality, weight := fmt.Sprint(e.Priority), e.Locality, fmt.Sprint(e.localityWeight)
		if i > 0 && e.Priority == last.Priority {
			priority = ""
			if e.Locality == last.Locality {
				locality, weight = "", ""
			}
		}
		t.Row(priority, locality, weight, e.Address, fmt.Sprint(e.Weight), percent(e.Share), e.remark())
		last = e
	}
	t.Print(w)
	if r.Error != "" {
		fmt.Fprintf(w, "\n%s %s\n", paint.Bad("calls that get no endpoint fail:"), r.Error)
	}
	for i, note := range r.Notes {
		if i == 0 {
			fmt.Fprintln(w)
		}
		fmt.Fprintf(w, "note: %s\n", note)
	}
}

func percent(share float64) string {
	if share == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f %%", 100*share)
}

func (e *Endpoint) remark() string {
	switch {
	case e.Down:
		return "down"
	case e.Health != "":
		return e.Health
	case e.localityWeight == 0:
		return "no traffic"
	}
	return ""
}
