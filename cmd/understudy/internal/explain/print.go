package explain

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/understudy-lb/understudy/cmd/understudy/internal/table"
	"github.com/understudy-lb/understudy/internal/text/printable"
)

func printJSON(w *bytes.Buffer, value any) error {
	var encoded bytes.Buffer
	encoder := json.NewEncoder(&encoded)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(value); err != nil {
		return err
	}
	w.Write(printable.JSON(encoded.Bytes()))
	return nil
}

// printTable prints a line for each endpoint. A cell that would repeat the cell above is empty.
func (r *Result) printTable(w *bytes.Buffer, paint table.Painter) {
	fmt.Fprintf(w, "cluster %s: ", printable.Text(r.Cluster))
	if r.Priority != nil {
		fmt.Fprintf(w, "calls go to priority %d\n\n", *r.Priority)
	} else {
		fmt.Fprintf(w, "%s\n\n", paint.Bad("calls fail"))
	}
	showCluster := slices.ContainsFunc(r.Tiers, func(t PriorityResult) bool { return t.Cluster != "" })
	rows := [][]string{columns(showCluster, "priority", "cluster", "locality", "weight", "endpoint", "weight", "share", "")}
	var previous *Endpoint
	for i := range r.Endpoints {
		rows = append(rows, r.Endpoints[i].rows(previous, showCluster)...)
		previous = &r.Endpoints[i]
	}
	fmt.Fprint(w, table.Format(rows))
	r.printTiers(w)
	if len(r.Drops) > 0 {
		fmt.Fprintf(w, "\ndrops: %s\n", printable.Text(r.drops()))
	}
	if r.Error != "" {
		fmt.Fprintf(w, "\n%s %s\n", paint.Bad("calls that get no endpoint fail:"), printable.Text(r.Error))
	}
	for i, note := range r.Notes {
		if i == 0 {
			fmt.Fprintln(w)
		}
		fmt.Fprintf(w, "note: %s\n", printable.Text(note))
	}
}

// printTiers prints where calls go when each priority fails. For a single priority without options,
// it prints nothing.
func (r *Result) printTiers(w *bytes.Buffer) {
	if len(r.Tiers) == 0 || len(r.Tiers) == 1 && len(r.Options) == 0 {
		return
	}
	fmt.Fprintln(w)
	showCluster := slices.ContainsFunc(r.Tiers, func(t PriorityResult) bool { return t.Cluster != "" })
	rows := [][]string{columns(showCluster, "priority", "cluster", "endpoints", "then", "")}
	for _, tier := range r.Tiers {
		next, standby := "calls fail", ""
		if tier.Next != nil {
			next = fmt.Sprintf("priority %d", *tier.Next)
		}
		if tier.Standby {
			standby = "standby"
		}
		rows = append(rows, columns(showCluster, fmt.Sprint(tier.Priority), printable.Text(tier.Cluster), fmt.Sprint(tier.Endpoints), next, standby))
	}
	fmt.Fprint(w, table.Format(rows))
}

// rows returns the rows of e in the table. It omits the cells that would repeat those of previous,
// the endpoint above.
func (e *Endpoint) rows(previous *Endpoint, showCluster bool) [][]string {
	cluster := printable.Text(e.Cluster)
	priority, locality, weight := fmt.Sprint(e.Priority), printable.Text(e.Locality), fmt.Sprint(e.LocalityWeight)
	if previous != nil && e.Priority == previous.Priority {
		priority = ""
		if e.Locality == previous.Locality {
			locality, weight = "", ""
		}
	}
	if previous != nil && e.Cluster == previous.Cluster {
		cluster = ""
	}
	rows := [][]string{columns(showCluster, priority, cluster, locality, weight, printable.Text(e.Address), fmt.Sprint(e.Weight), table.Percent(e.Share, 2), printable.Text(e.remark()))}
	for _, address := range e.AdditionalAddresses {
		rows = append(rows, columns(showCluster, "", "", "", "", "or "+printable.Text(address), "", "", e.addressRemark(address)))
	}
	return rows
}

// columns returns the cells of a row. Unless showCluster is set, it omits the second cell, which is
// the name of the cluster.
func columns(showCluster bool, cells ...string) []string {
	if showCluster {
		return cells
	}
	return slices.Delete(cells, 1, 2)
}

func (r *Result) drops() string {
	var drops []string
	for _, d := range r.Drops {
		suffix := ""
		if d.Cluster != "" {
			suffix = " of " + d.Cluster
		}
		drops = append(drops, d.Category+suffix+" "+strconv.FormatFloat(float64(d.RequestsPerMillion)/10_000, 'f', -1, 64)+" %")
	}
	return strings.Join(drops, ", ")
}

func (e *Endpoint) remark() string {
	switch {
	case e.Down:
		return "down"
	case e.Health != "":
		return e.Health
	case e.LocalityWeight == 0:
		return "no traffic"
	case e.StandsFor != "" && !e.isDown(e.Address):
		return e.StandsFor
	}
	return e.addressRemark(e.Address)
}

// addressRemark returns a remark if the address is down while another address of the endpoint is
// not. Otherwise, it returns "".
func (e *Endpoint) addressRemark(address string) string {
	if !e.Down && e.isDown(address) {
		return "address down"
	}
	return ""
}
