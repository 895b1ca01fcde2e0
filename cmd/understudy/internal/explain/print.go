package explain

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/understudy-lb/understudy/cmd/understudy/internal/table"
	"github.com/understudy-lb/understudy/internal/text/printable"
)

// Everything is formatted first, so that we can write it in a single call.
func write(results []*Result, asList bool, o Options) error {
	var text bytes.Buffer
	if o.JSON {
		var value any = results[0]
		if asList {
			value = map[string][]*Result{"clusters": results}
		}
		encoded, err := json.MarshalIndent(value, "", "  ")
		if err != nil {
			return err
		}
		fmt.Fprintf(&text, "%s\n", printable.JSON(encoded))
	}
	for i := 0; i < len(results) && !o.JSON; i++ {
		if i > 0 {
			fmt.Fprintln(&text)
		}
		results[i].printTables(&text, table.PainterFor(o.Out))
	}
	_, err := o.Out.Write(text.Bytes())
	return err
}

func (r *Result) printTables(w *bytes.Buffer, paint table.Painter) {
	state := paint.Bad("calls fail")
	if r.Priority != nil {
		state = fmt.Sprintf("calls go to priority %d", *r.Priority)
	}
	rows := [][]string{row("priority", "", "locality", "weight", "endpoint", "weight", "share", "")}
	for i := range r.Endpoints {
		e := &r.Endpoints[i]
		rows = append(rows, row(e.Priority, e.Cluster, e.Locality, e.LocalityWeight, strings.Join(e.addresses(), " or "), e.Weight, table.Percent(e.Share, 2), e.remark()))
	}
	const repeated = 3 // how many of a row's first cells we blank if they're the same as in the row above
	for i := len(rows) - 1; i > 1; i-- {
		for c := 0; c < repeated && rows[i][c] == rows[i-1][c]; c++ {
			rows[i][c] = ""
		}
	}
	fmt.Fprintf(w, "cluster %s: %s\n\n%s", printable.Text(r.Cluster), state, table.Format(rows))
	if len(r.Tiers) > 1 || len(r.Tiers)*len(r.Options) > 0 {
		rows = [][]string{row("priority", "", "endpoints", "then", "")}
		for _, t := range r.Tiers {
			next, standby := "calls fail", ""
			if t.Next != nil {
				next = fmt.Sprintf("priority %d", *t.Next)
			}
			if t.Standby {
				standby = "standby"
			}
			rows = append(rows, row(t.Priority, t.Cluster, t.Endpoints, next, standby))
		}
		fmt.Fprintf(w, "\n%s", table.Format(rows))
	}
	var drops []string
	for _, d := range r.Drops {
		of := strings.TrimSuffix(d.Category+" of "+d.Cluster, " of ")
		drops = append(drops, of+" "+strconv.FormatFloat(float64(d.RequestsPerMillion)/10_000, 'f', -1, 64)+" %")
	}
	if len(drops) > 0 {
		fmt.Fprintf(w, "\ndrops: %s\n", printable.Text(strings.Join(drops, ", ")))
	}
	if r.Error != "" {
		fmt.Fprintf(w, "\n%s %s\n", paint.Bad("calls that get no endpoint fail:"), printable.Text(r.Error))
	}
	if len(r.Warnings)+len(r.Notes) > 0 {
		fmt.Fprintln(w)
	}
	for _, warning := range r.Warnings {
		fmt.Fprintln(w, paint.Bad("warning:"), warning)
	}
	for _, note := range r.Notes {
		fmt.Fprintln(w, "note:", printable.Text(note))
	}
}

func row(priority any, cluster string, cells ...any) []string {
	list := []string{printable.Text(strings.TrimSpace(fmt.Sprint(priority, " ", cluster)))}
	for _, cell := range cells {
		list = append(list, printable.Text(fmt.Sprint(cell)))
	}
	return list
}

func (e *Endpoint) remark() string {
	if len(e.DownAddresses) > 0 && !e.Down {
		return "down: " + strings.Join(e.DownAddresses, ", ")
	}
	if e.Down {
		return "down"
	}
	return cmp.Or(e.Health, e.StandsFor)
}
