package main

import (
	_ "embed"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

//go:embed tiers.csv
var recorded string

type recording struct {
	clients, backends, callMillis int
	cost, connection              cost // per client, and per connection to a backend
	seconds                       [][]int
}

type cost struct{ bytes, goroutines int }

// calls returns the columns with the calls to a priority's backends. A row of recording.seconds
// starts with the calls to each backend, those of p0 first. Then come the connection attempts to
// each backend in the same order, the connection attempts to the management server, and the failed
// calls.
func (r recording) calls(priority int) (from, to int) {
	return priority * r.backends, (priority + 1) * r.backends
}

func (r recording) connections(priority int) (from, to int) {
	from, to = r.calls(priority)
	return from + 2*r.backends, to + 2*r.backends
}

func (r recording) control() int { return 4 * r.backends }
func (r recording) failed() int  { return 4*r.backends + 1 }

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

func parseRecord(text string) (recording, error) {
	var rows [][]int
	for line := range strings.Lines(text) {
		var row []int
		for cell := range strings.SplitSeq(strings.TrimSpace(line), ",") {
			n, err := strconv.Atoi(cell)
			if err != nil {
				return recording{}, fmt.Errorf("tiers.csv, line %d: %w", len(rows)+1, err)
			}
			row = append(row, n)
		}
		rows = append(rows, row)
	}
	if len(rows) != phases[len(phases)-1].from+1 || len(rows[0]) != 7 {
		return recording{}, fmt.Errorf("tiers.csv: %d lines, want the fleet and a line for each of %d seconds", len(rows), phases[len(phases)-1].from)
	}
	h := rows[0]
	r := recording{clients: h[0], backends: h[1], callMillis: h[2], cost: cost{h[3], h[4]}, connection: cost{h[5], h[6]}, seconds: rows[1:]}
	for i, s := range r.seconds {
		if len(s) != r.failed()+1 {
			return recording{}, fmt.Errorf("tiers.csv, line %d: %d columns, want %d", i+2, len(s), r.failed()+1)
		}
	}
	return r, nil
}

func (r recording) column(c, from, to int) []int {
	var all []int
	for _, s := range r.seconds[from:to] {
		all = append(all, s[c])
	}
	return all
}

// busiest returns the maximum of the columns first to end-1, for each second from from to to-1.
func (r recording) busiest(first, end, from, to int) []int {
	var all []int
	for _, s := range r.seconds[from:to] {
		all = append(all, slices.Max(s[first:end]))
	}
	return all
}

// steady returns the median of the last 30 seconds, by which time the fleet has settled.
func steady(column []int) int {
	tail := slices.Clone(column[max(0, len(column)-30):])
	slices.Sort(tail)
	return tail[len(tail)/2]
}

func tiersPage(r recording) string {
	var b strings.Builder
	base := cost{r.cost.bytes - r.backends*r.connection.bytes, r.cost.goroutines - r.backends*r.connection.goroutines}
	fmt.Fprintf(&b, tiersText, thousands(r.clients), r.backends, float64(r.callMillis)/1000)
	for i, p := range phases[:len(phases)-1] {
		to := phases[i+1].from
		cell := func(column []int) string {
			return fmt.Sprintf("%s / %s", thousands(slices.Max(column)), thousands(steady(column)))
		}
		busiest := func(first, end int) string { return cell(r.busiest(first, end, p.from, to)) }
		lost := 0
		for _, n := range r.column(r.failed(), p.from, to) {
			lost += n
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s | %d |\n", p.name, busiest(r.calls(0)), busiest(r.calls(1)),
			busiest(r.connections(0)), busiest(r.connections(1)), cell(r.column(r.control(), p.from, to)), lost)
	}
	fmt.Fprintf(&b, tiersEnd, r.clients*1000/r.callMillis/r.backends,
		r.cost.bytes>>10, r.cost.goroutines, r.backends, r.connection.bytes>>10, r.connection.goroutines, base.bytes>>10, base.goroutines,
		thousands(r.clients), r.cost.bytes*r.clients>>20, thousands(10<<30/r.cost.bytes/100*100))
	return b.String()
}

const tiersText = `# A fleet that loses a priority

<!-- Written by: go run ./test/bench/fleet, from what make fleet-tiers recorded -->

We started %s simulated clients at the same moment, each with a stream to the same management server. There are two
priorities, p0 and p1, with %d backends of equal weight each. Each client makes a wait-for-ready call every %.0f s. We
restart the backends of p0 one after the other, 20 s apart. Later, we take down p0 and then the management server, and
bring them back.

## Peaks

These are the calls or connections per second at the busiest backend, including connections that it refused. The first
number is the peak, and the second is the median once the fleet has settled.

| | calls, p0 | calls, p1 | connections, p0 | connections, p1 | control plane | calls lost |
| --- | ---: | ---: | ---: | ---: | ---: | ---: |
`

const tiersEnd = `
![Calls per second at each backend](calls.svg)

![Connections requested per second at each backend and at the management server](connections.svg)

- **At the start**, every client connects to all backends of p0 and calls the one that connected first. Since they all
  started together, they stay in step, so in some seconds the busiest backend gets more than its fair share of %d calls.
- **When a backend restarts**, all clients reconnect at once and are refused, twice within about a second. After that,
  gRPC's backoff spreads them out. In the meantime, calls go to the other backends.
- **When p0 goes down**, all clients connect to p1 in the same second. With [warmStandby](../options.md#warmstandby),
  they're connected in advance.
- **When p0 comes back**, backoff spreads the clients' return over half a minute. If p0 was down for longer, it takes
  longer, but no more than two minutes.
- **Without a control plane**, calls aren't affected. Clients first reconnect in the same second, and later at different
  times.

## How many clients fit

A simulated client takes %d KB and %d goroutines, including both ends of its stream and of its %d connections to
backends. Each connection costs %d KB and %d goroutines, and the rest is %d KB and %d goroutines. %s clients take %d MB,
and you can fit about %s into 10 GB. Note that Go's garbage collector lets the process grow to twice that size.
`

func tiers(r recording) map[string]string {
	lines := func(name string, class, from, to int) (list []series) {
		for c := from; c < to; c++ {
			list = append(list, series{name, class, r.column(c, 0, len(r.seconds))})
			name = ""
		}
		return list
	}
	bothPriorities := func(columns func(int) (int, int)) []series {
		from0, to0 := columns(0)
		from1, to1 := columns(1)
		return append(lines("p0", 0, from0, to0), lines("p1", 1, from1, to1)...)
	}
	connections := append(bothPriorities(r.connections), series{"control plane", 2, r.column(r.control(), 0, len(r.seconds))})
	return map[string]string{
		"tiers.md":        tiersPage(r),
		"calls.svg":       timePlot("calls per second, one line per backend", linear, bothPriorities(r.calls)),
		"connections.svg": timePlot("connections requested per second, one line per backend", logarithmic, connections),
	}
}
