package main

import (
	"fmt"
	"strings"
)

// tableRows lists the rows of the tables, in calls per client.
var tableRows = []int{1, 2, 5, 10, 20, 50}

const introduction = `# A fleet's first calls

<!-- Written by: go run ./test/bench/fleet -->

Earliest deadline first (gRFC A34) gives each endpoint exactly its share, but always in the same order. If many clients
start together, they all call the heaviest endpoints first. To avoid that, set "startPoint" of weighted_round_robin to
"random". Each client then delays its first call to an endpoint by a random part of the time between two calls to it.

For this simulation, we let %s clients make 1 to %d calls each, to %s endpoints with weights from 1 to %d. "spec" and
"random" are the values of "startPoint". With random weighted picks, clients choose each endpoint at random, in
proportion to its weight.

## The largest load

How many times its fair share of the calls does the busiest endpoint get?

`

const conclusion = `
![The largest load against its fair share, by the calls that each client makes](load.svg)

With "spec", every client makes its first k calls to the k heaviest endpoints. "random" starts out just as good as
random weighted picks, and does better from about ten calls on.

## Endpoints that get any calls

`

func page(f fleet, results []result) string {
	var b strings.Builder
	fmt.Fprintf(&b, introduction, thousands(f.clients), f.calls, thousands(f.endpoints), f.maxWeight)
	table(&b, f, results, func(r result, k int) string { return fmt.Sprintf("%.2f", r.overload[k]) })
	b.WriteString(conclusion)
	table(&b, f, results, func(r result, k int) string { return fmt.Sprintf("%.1f %%", 100*r.busy[k]) })
	return b.String()
}

func table(b *strings.Builder, f fleet, results []result, cell func(r result, k int) string) {
	b.WriteString("| calls of each client |")
	for _, r := range results {
		fmt.Fprintf(b, " %s |", r.name)
	}
	b.WriteString("\n| ---: |" + strings.Repeat(" ---: |", len(results)) + "\n")
	for _, calls := range tableRows {
		if calls > f.calls {
			break
		}
		fmt.Fprintf(b, "| %d |", calls)
		for _, r := range results {
			fmt.Fprintf(b, " %s |", cell(r, calls-1))
		}
		b.WriteString("\n")
	}
}

func thousands(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%d,%03d", n/1000, n%1000)
}
