package watch

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/understudy-lb/understudy/internal/debugpage"
	"github.com/understudy-lb/understudy/internal/printable"
)

func countStates(p *debugpage.Policy, counts map[string]int, depth int) {
	if p == nil || depth > deepest {
		return
	}
	if branches(p) {
		for _, child := range p.Children {
			countStates(child.Below, counts, depth+1)
		}
		return // Folded counts priorities and localities here, and not endpoints
	}
	for _, child := range p.Children {
		counts[child.State]++
		if child.Ejected != "" {
			counts[ejected]++
		}
	}
	for state, n := range p.Folded {
		counts[state] += n
	}
}

// ejected is the key for ejected endpoints in the result of countStates. The other keys are states.
const ejected = "ejected"

func ready(counts map[string]int) string {
	all := -counts[ejected]
	for _, n := range counts {
		all += n
	}
	switch {
	case all <= 0:
		return ""
	case counts[ejected] > 0:
		return fmt.Sprintf("%d/%d READY, %d ejected", counts["READY"], all, counts[ejected])
	}
	return fmt.Sprintf("%d/%d READY", counts["READY"], all)
}

func byState(counts map[string]int) string {
	states := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(counts[b]-counts[a], strings.Compare(a, b))
	})
	for i, state := range states {
		states[i] = fmt.Sprintf("%d %s", counts[state], strings.ReplaceAll(state, "_", " "))
	}
	return strings.Join(states, ", ")
}

func percent(share float64) string { return printable.Percent(min(1, max(0, share))) + " %" }

func count(n int, what string) string { return printable.Count(n, what, what+"s") }
