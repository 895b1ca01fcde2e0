package main

import (
	"fmt"
	"strings"
)

// shown lists the numbers of calls per client for which the tables have a row.
var shown = []int{1, 2, 5, 10, 20, 50}

const introduction = `# A fleet's first calls

<!-- Written by: go run ./bench/fleet -->

Earliest deadline first gives each endpoint its share exactly, but always in the same
order: in gRFC A34, the first picks of every client are the heaviest endpoints. When many
clients start together, or make only a few calls each, all of them call the same few
endpoints. That is what weighted_round_robin's field "startPoint" is for: with "random",
each client starts each endpoint somewhere in its interval.

What a fleet does to its backends when they restart, or when a tier is lost and comes
back, is on [a page of its own](tiers.md).

This is a simulation of %s clients that each make 1 to %d calls to %s endpoints with
weights from 1 to %d. All endpoints are READY from the start, and clients pick with the
scheduler of this project ("spec", "random") or draw each endpoint at random with its
weight's probability.

## The largest load

The load of the endpoint that gets most calls, as a multiple of its fair share (its
weight's part of all calls). 1.00 is perfect.

`

const conclusion = `
![The largest load against its fair share, by the calls that each client makes](load.svg)

With "spec", all clients' first calls go to one endpoint, and after k calls to the k
heaviest, until clients have made about as many calls as there are endpoints. "random"
begins as well as random weighted picks do, and from about ten calls on is better, since
each client's own picks keep to the weights, where random ones have the noise of their
draws. That noise is what is left above 1.00.

## The largest multiple of a fair share

The same for the endpoint that is worst off. That may be one whose fair share is a few
calls of the whole fleet: there, a random start is as subject to chance as random picks.

`

const busy = `
## Endpoints with any call

The part of the endpoints that the fleet has called at all.

`

func page(f fleet, results []result) string {
	var b strings.Builder
	fmt.Fprintf(&b, introduction, thousands(f.clients), f.calls, thousands(f.endpoints), f.maxWeight)
	table(&b, f, results, func(r result, k int) string { return fmt.Sprintf("%.2f", r.overload[k]) })
	b.WriteString(conclusion)
	table(&b, f, results, func(r result, k int) string { return fmt.Sprintf("%.2f", r.worst[k]) })
	b.WriteString(busy)
	table(&b, f, results, func(r result, k int) string { return fmt.Sprintf("%.1f %%", 100*r.busy[k]) })
	return b.String()
}

func table(b *strings.Builder, f fleet, results []result, cell func(r result, k int) string) {
	b.WriteString("| calls of each client |")
	for _, r := range results {
		fmt.Fprintf(b, " %s |", r.name)
	}
	b.WriteString("\n| ---: |" + strings.Repeat(" ---: |", len(results)) + "\n")
	for _, calls := range shown {
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
