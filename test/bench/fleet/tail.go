package main

import (
	_ "embed"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

//go:embed tail.csv
var tailRecord string

type tails struct {
	percentiles []float64
	rows        []*tailRow
}

// tailRow has one value per seed.
type tailRow struct {
	deadline, policy string
	calls            int
	failed           []float64
	slow             []float64
	elsewhere        []float64
	millis           [][]float64
}

func parseTails(table string) (t tails, err error) {
	const fixed = 7
	lines := strings.Split(strings.TrimSpace(table), "\n")
	head := strings.Split(lines[0], ",")
	for _, p := range head[min(fixed, len(head)):] {
		n, err := strconv.ParseFloat(strings.TrimPrefix(p, "p"), 64)
		if err != nil {
			return tails{}, fmt.Errorf("tail.csv, line 1: %w", err)
		}
		t.percentiles = append(t.percentiles, n)
	}
	for i, line := range lines[1:] {
		cells := strings.Split(line, ",")
		if len(cells) != len(head) || len(head) <= fixed {
			return tails{}, fmt.Errorf("tail.csv, line %d: %d columns, want %d", i+2, len(cells), len(head))
		}
		numbers := make([]float64, len(cells))
		for c := 2; c < len(cells); c++ {
			if numbers[c], err = strconv.ParseFloat(cells[c], 64); err != nil {
				return tails{}, fmt.Errorf("tail.csv, line %d: %w", i+2, err)
			}
		}
		t.add(cells[0], cells[1], numbers[3:fixed], numbers[fixed:])
	}
	return t, nil
}

func (t *tails) add(deadline, policy string, counts, millis []float64) {
	i := slices.IndexFunc(t.rows, func(r *tailRow) bool { return r.deadline == deadline && r.policy == policy })
	if i < 0 {
		i = len(t.rows)
		t.rows = append(t.rows, &tailRow{deadline: deadline, policy: policy, calls: int(counts[0]), millis: make([][]float64, len(millis))})
	}
	r := t.rows[i]
	r.calls = min(r.calls, int(counts[0]))
	percent := func(n float64) float64 { return 100 * n / counts[0] }
	r.failed = append(r.failed, percent(counts[1]))
	r.slow = append(r.slow, percent(counts[2]))
	r.elsewhere = append(r.elsewhere, percent(counts[3]))
	for p, ms := range millis {
		r.millis[p] = append(r.millis[p], ms)
	}
}

func median(seeds []float64) float64 {
	sorted := slices.Sorted(slices.Values(seeds))
	return sorted[len(sorted)/2]
}

func spread(format string, seeds []float64) string {
	middle, low, high := fmt.Sprintf(format, median(seeds)), slices.Min(seeds), slices.Max(seeds)
	from, to := fmt.Sprintf(format, low), fmt.Sprintf(format, high)
	if high <= 1.1*low || from == to {
		return middle
	}
	return fmt.Sprintf("%s (%s–%s)", middle, from, to)
}

func (t tails) table(deadline string) string {
	var b strings.Builder
	b.WriteString("| policy | p50 | p99 | p99.9 | failed | slow one | second priority |\n| --- | ---: | ---: | ---: | ---: | ---: | ---: |\n")
	for _, r := range t.rows {
		if r.deadline != deadline {
			continue
		}
		fmt.Fprintf(&b, "| %s |", tailNames[r.policy])
		for _, p := range []float64{50, 99, 99.9} {
			fmt.Fprintf(&b, " %s |", spread("%.0f", r.millis[slices.Index(t.percentiles, p)]))
		}
		fmt.Fprintf(&b, " %s %% | %s %% | %s %% |\n", spread("%.2f", r.failed), spread("%.2f", r.slow), spread("%.2f", r.elsewhere))
	}
	return b.String()
}

// plot draws the latency for each percentile, with a line per policy. On the x axis, every further
// nine takes up the same width.
func (t tails) plot(deadline string) string {
	const lowest, highest = 30, 1000
	most := slices.Max(t.percentiles)
	nines := func(p float64) float64 { return -math.Log10(1 - p/100) }
	first := nines(t.percentiles[0])
	x := func(p float64) float64 { return left + (nines(p)-first)/(nines(most)-first)*(right-left) }
	y := func(ms float64) float64 {
		return bottom - math.Log(ms/lowest)/math.Log(highest/lowest)*(bottom-top)
	}
	var b strings.Builder
	begin(&b)
	text(&b, left, top-24, "start", "ink", "how long calls take; a call that fails takes its deadline of "+deadline)
	for _, ms := range []float64{30, 50, 100, 200, 500, 1000} {
		fmt.Fprintf(&b, "<path d=\"M%d %.1fH%d\" class=\"grid\"/>\n", left, y(ms), right)
		text(&b, left-10, y(ms)+4, "end", "ink", fmt.Sprintf("%v ms", ms))
	}
	for _, p := range []float64{50, 90, 99, 99.9} {
		text(&b, x(p), bottom+22, "middle", "ink", fmt.Sprintf("p%v", p))
	}
	text(&b, (left+right)/2, bottom+42, "middle", "ink", "percentile of the calls")
	below := float64(top)
	for _, r := range t.rows {
		if r.deadline != deadline {
			continue
		}
		class, dashes := tailStyle(r.policy)
		var points strings.Builder
		for i, p := range t.percentiles {
			fmt.Fprintf(&points, "%.1f,%.1f ", x(p), y(median(r.millis[i])))
		}
		fmt.Fprintf(&b, "<polyline points=%q class=\"c%d\"%s/>\n", strings.TrimSpace(points.String()), class, dashes)
		text(&b, right+8, below, "start", fmt.Sprintf("f%d", class), r.policy)
		below += 18
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// tailStyle returns the color for a policy. A policy on its own has the color of the same policy
// through us, but with dashes.
func tailStyle(policy string) (class int, dashes string) {
	if strings.HasSuffix(policy, " alone") {
		dashes = ` stroke-dasharray="6 4"`
	}
	switch {
	case strings.HasPrefix(policy, "least_request"):
		class = 1
	case policy == "load reports":
		class = 2
	}
	return class, dashes
}

var tailNames = map[string]string{
	"weights":             "`weighted_round_robin`, ours (A34)",
	"least_request":       "`least_request_experimental` through us (A48)",
	"load reports":        "`weighted_round_robin{}` through us (A58)",
	"least_request alone": "gRPC's `least_request_experimental` alone",
	"round_robin alone":   "gRPC's `round_robin` alone",
}

func (t tails) page() string {
	calls := math.MaxInt
	for _, r := range t.rows {
		calls = min(calls, r.calls)
	}
	return fmt.Sprintf(tailText, thousands(calls), t.table("1s"), t.table("3s"))
}

const tailText = `# One slow backend

<!-- Written by: go run ./test/bench/fleet, from what make tail recorded -->

How long do calls take with each [endpoint policy](../howto/endpoint-policy.md) if one of ten backends is slow and
nobody has told the clients?

We have two priorities of ten backends with four workers each. In each priority, nine backends take 40 to 60 ms for a
call, and one takes 500 ms. Ten clients make 444 calls a second, at random times, which is 60 %% of what a priority can
handle. All weights are equal. For gRFC A58, the backends tell the clients with each answer how many of their workers
were busy and how many calls they answered in a second. Both are averages that decay within five seconds.

Three of the clients are ours. They use ` + "`Recommended()`" + ` and an ` + "`EndpointPolicy`" + `, so they have ejection and shares. The
other two are gRPC's policies alone, with the ten backends of the first priority. Everything runs in virtual time, for
at least %s calls after the first 30 s, with three seeds. In the tables, you see the median of the seeds in
milliseconds, with the range if it's wide. If a call fails, we count its whole deadline. "Slow one" is the part of the
calls that the first priority's slow backend answers.

## A deadline of 1 s

%s
![How long calls take at each percentile](tail.svg)

In the plot, "weights" is our default, and "load reports" is A58.

- **Ejection does most of it.** With a deadline of 1 s, an answer after 500 ms is late, so each client soon ejects the
  slow backend. gRPC's round_robin doesn't eject anything. It sends the backend a tenth of the calls, and nearly all of
  them fail. least_request only sees a client's own calls, two or three at a time, which isn't enough to avoid a full
  queue.
- **The rest happens on the return.** When the ejection ends, a client tries the backend again, and some of these calls
  fail. With equal weights, our default sends more of them there at once, so it has the most failures of the three. A58
  has the fewest, because its weights still know the backend.
- **A58 does best here**, but only because each backend reports its load.
- The second priority hardly gets any calls, since one bad endpoint doesn't make the whole priority bad.

## A deadline of 3 s

%s
Now an answer after 500 ms is in time, so nothing is ejected until the slow backend's queue is long.

- **Our default has the best p99 and the most failures of the three.** It fills that queue, ejects the backend when
  calls expire, and does the same again after each return. It even loses more calls than gRPC's least_request alone,
  which doesn't eject anything.
- **least_request and A58 lose hardly any calls.** They let the slow backend answer about one call in a hundred, which
  is why A58's p99 is that backend's 500 ms.

So if your backends report their load, use A58. If they don't, and your deadlines are long compared with the time of a
call, use least_request. How well that works depends on the number of clients, because each only sees its own calls. In
single runs of 30,000 calls with a deadline of 1 s, gRPC's least_request alone lost 0.04 %% with one client and 6 %%
with fifty.
`
