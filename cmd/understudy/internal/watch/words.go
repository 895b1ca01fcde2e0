package watch

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/understudy-lb/understudy/internal/page"
	"github.com/understudy-lb/understudy/internal/text/printable"
)

func countStates(p *page.Policy, counts map[string]int, depth int) {
	if p == nil || depth > maxDepth {
		return
	}
	if hasNestedPolicies(p) {
		for _, child := range p.Children {
			countStates(child.Below, counts, depth+1)
		}
		return // here, Folded counts priorities or localities, and not endpoints
	}
	for _, child := range p.Children {
		counts[child.State]++
		if child.Ejected != "" {
			counts[ejectedKey]++
		}
	}
	for state, n := range p.Folded {
		counts[state] += n
	}
}

// ejectedKey is the key for the number of ejected endpoints in the result of countStates. The other
// keys are states.
const ejectedKey = "ejected"

func readySummary(counts map[string]int) string {
	total := -counts[ejectedKey]
	for _, n := range counts {
		total += n
	}
	switch {
	case total <= 0:
		return ""
	case counts[ejectedKey] > 0:
		return fmt.Sprintf("%d/%d READY, %d ejected", counts["READY"], total, counts[ejectedKey])
	}
	return fmt.Sprintf("%d/%d READY", counts["READY"], total)
}

func formatCounts(counts map[string]int) string {
	states := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(counts[b]-counts[a], strings.Compare(a, b))
	})
	for i, state := range states {
		states[i] = fmt.Sprintf("%d %s", counts[state], strings.ReplaceAll(state, "_", " "))
	}
	return strings.Join(states, ", ")
}

func percent(share float64) string { return printable.Percent(min(1, max(0, share))) + " %" }

func plural(n int, noun string) string { return printable.Count(n, noun, noun+"s") }
