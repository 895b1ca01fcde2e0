package main

import (
	_ "embed"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// recorded is what became of a fleet in the simulator: see "make fleet-tiers".
//
//go:embed tiers.csv
var recorded string

// record is a fleet's life, second by second.
type record struct {
	clients, backends, callMillis, bytes, goroutines int
	seconds                                          [][]int
}

// The columns of a second: of the backend of p0, and of p1, that was sent most calls, and
// of those that were asked for most connections; of the management server; calls that failed.
const (
	calls0 = iota
	calls1
	connections0
	connections1
	control
	failed
)

// phases are what befell the fleet, from which second on.
var phases = []struct {
	from int
	name string
}{
	{0, "start"},
	{60, "p0 restarts"},
	{180, "p0 is lost"},
	{240, "p0 is back"},
	{420, "no control plane"},
	{480, "it is back"},
	{600, ""},
}

// parseRecord reads what the simulator wrote.
func parseRecord(text string) (record, error) {
	var rows [][]int
	for line := range strings.Lines(text) {
		var row []int
		for cell := range strings.SplitSeq(strings.TrimSpace(line), ",") {
			n, err := strconv.Atoi(cell)
			if err != nil {
				return record{}, fmt.Errorf("tiers.csv, line %d: %w", len(rows)+1, err)
			}
			row = append(row, n)
		}
		rows = append(rows, row)
	}
	if len(rows) != phases[len(phases)-1].from+1 || len(rows[0]) != 5 || len(rows[1]) != failed+1 {
		return record{}, fmt.Errorf("tiers.csv: %d lines, want the fleet and a line for each of %d seconds", len(rows), phases[len(phases)-1].from)
	}
	h := rows[0]
	return record{h[0], h[1], h[2], h[3], h[4], rows[1:]}, nil
}

// column returns one column, from one second to before another.
func (r record) column(c, from, to int) []int {
	var all []int
	for _, s := range r.seconds[from:to] {
		all = append(all, s[c])
	}
	return all
}

// steady is the median of the last half minute.
func steady(column []int) int {
	tail := slices.Clone(column[max(0, len(column)-30):])
	slices.Sort(tail)
	return tail[len(tail)/2]
}

// tiersPage returns the page.
func tiersPage(r record) string {
	var b strings.Builder
	fmt.Fprintf(&b, tiersText, thousands(r.clients), r.backends, float64(r.callMillis)/1000, r.bytes>>10, r.goroutines, r.bytes*r.clients>>20)
	for i, p := range phases[:len(phases)-1] {
		to := phases[i+1].from
		col := func(c int) []int { return r.column(c, p.from, to) }
		cell := func(c int) string { return fmt.Sprintf("%d / %d", slices.Max(col(c)), steady(col(c))) }
		lost := 0
		for _, n := range col(failed) {
			lost += n
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s | %d |\n", p.name, cell(calls0), cell(calls1), cell(connections0), cell(connections1), cell(control), lost)
	}
	fmt.Fprintf(&b, tiersEnd, r.clients*1000/r.callMillis/r.backends)
	return b.String()
}

const tiersText = `# A fleet that loses a tier

<!-- Written by: go run ./docs/fleet, from what make fleet-tiers recorded -->

%s clients of one management server in the simulator, each with a stream of its own. There
are two priorities of %d backends, which have equal weights, and each client makes a call
every %.0f s that waits for ready. All clients start at the same moment. Then the backends
of p0 restart one after the other, 20 s apart: each says GOAWAY, and listens again after 5 s.
Later p0 is lost, comes back, and the management server is lost and comes back.

A client, with its share of the servers, takes %d KB and %d goroutines here, four
connections among them: %d MB for all.

## Peak against steady

Calls and connections in a second, at the backend that got most of them: the peak of the
phase / the median of its last half minute. Connections that were refused count.

| | calls, p0 | calls, p1 | connections, p0 | connections, p1 | control plane | calls lost |
| --- | ---: | ---: | ---: | ---: | ---: | ---: |
`

const tiersEnd = `
![Calls a second at the busiest backend of each priority](calls.svg)

![Connections a second at the backend, and the management server, that is asked for most](connections.svg)

What follows from this:

- **At the start** every client connects to all backends of p0 in the same second: that is
  the largest burst of all, and the first calls come right behind it. p1 is left alone:
  gRFC A56 creates a priority when it is needed.
- **Clients that began together stay in step.** The first call of each goes to the backend
  that was connected first, and each client then takes the others before it comes back to
  that one. All get their share over a few calls, but in one second one backend has more
  than another: that is why the busiest one has more than its fair share of %d a second.
- **A restart** is felt by all clients at once, since each has a connection to each backend.
  They come back at once, too, after GOAWAY, and are refused, twice within the first second
  or so; gRPC's backoff spreads them a little more with each attempt. The calls move to the
  other backends.
- **When p0 is lost**, its connections fail at once and everybody connects to p1 within
  two seconds. p1 then has the load of p0, and nothing is lost; but its backends must stand as
  many handshakes in that time as there are clients. No client connects ahead of that.
- **When p0 is back**, backoff spreads the return over half a minute: p0's peak is its steady
  load. The longer a tier is away, the wider the spread, up to gRPC's two minutes.
- **Without a control plane** nothing changes for calls. When it is back, the clients'
  streams come back with the backoff, not all at once; while it is refused, they ask at first
  all in the same second.
`

// line of a plot over time.
type series struct {
	name   string
	values []int
}

// timePlot returns lines over the seconds, with the phases, as an SVG image.
func timePlot(title string, r record, lines ...series) string {
	most := 1
	for _, s := range lines {
		most = max(most, slices.Max(s.values))
	}
	step := int(math.Pow(10, math.Floor(math.Log10(float64(most)))))
	if most/step < 3 {
		step = max(1, step/2)
	}
	x := func(second int) float64 { return left + float64(second)/float64(len(r.seconds))*(right-left) }
	y := func(n int) float64 { return bottom - float64(n)/float64(most)*(bottom-top) }
	var b strings.Builder
	fmt.Fprintf(&b, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" font-size=\"13\">\n",
		width, height, width, height)
	fmt.Fprintf(&b, "<rect width=\"%d\" height=\"%d\" fill=\"white\"/>\n", width, height)
	text(&b, left, top-24, "start", "#222222", title)
	for n := 0; n <= most; n += step {
		fmt.Fprintf(&b, "<path d=\"M%d %.1fH%d\" stroke=\"#dddddd\"/>\n", left, y(n), right)
		text(&b, left-10, y(n)+4, "end", "#222222", thousands(n))
	}
	for i, p := range phases[:len(phases)-1] {
		fmt.Fprintf(&b, "<path d=\"M%.1f %dV%d\" stroke=\"#bbbbbb\" stroke-dasharray=\"3 3\"/>\n", x(p.from), top, bottom)
		text(&b, x(p.from)+3, float64(bottom+18+14*(i%2)), "start", "#222222", p.name)
	}
	text(&b, right, bottom+48, "end", "#222222", "ten minutes")
	for i, s := range lines {
		var points strings.Builder
		for second, n := range s.values {
			fmt.Fprintf(&points, "%.1f,%.1f ", x(second), y(n))
		}
		fmt.Fprintf(&b, "<polyline points=%q fill=\"none\" stroke=%q stroke-width=\"1.5\"/>\n", strings.TrimSpace(points.String()), colours[i])
		text(&b, right+8, float64(top+20*(i+1)), "start", colours[i], s.name)
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// tiers returns the page and its plots, by name of the file.
func tiers(r record) map[string]string {
	all := func(c int) []int { return r.column(c, 0, len(r.seconds)) }
	return map[string]string{
		"tiers.md":        tiersPage(r),
		"calls.svg":       timePlot("calls a second at the busiest backend", r, series{"p0", all(calls0)}, series{"p1", all(calls1)}),
		"connections.svg": timePlot("connections asked for in a second", r, series{"a backend of p0", all(connections0)}, series{"one of p1", all(connections1)}, series{"control plane", all(control)}),
	}
}
