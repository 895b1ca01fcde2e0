package differential

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func TestRandomTargets(t *testing.T) {
	compare(t, targets, func() generator { return &targetGenerator{last: reports{}, sticky: map[string]bool{}} }, "w-sticky", "w-idle")
}

// targetGenerator draws updates and reports for weighted_target, of all kinds. It
// compares which children get calls; how many each gets is TestShares.
type targetGenerator struct {
	last   reports
	sticky map[string]bool // failed, and has reported CONNECTING since
	all    []string
}

func (g *targetGenerator) next(random *rand.Rand, live []string) string {
	if g.all == nil || random.IntN(8) == 0 {
		g.all = []string{}
		command := "update"
		for _, name := range []string{"a", "b", "c"} {
			if random.IntN(3) > 0 {
				g.all = append(g.all, name)
				command += fmt.Sprintf(" %s=%d", name, 1+random.IntN(3))
			}
		}
		g.last.forget(g.all)
		maps.DeleteFunc(g.sticky, func(name string, _ bool) bool { return !slices.Contains(g.all, name) })
		return command
	}
	if len(live) == 0 {
		return "wait 1s"
	}
	name := anyOf(random, live...)
	state := anyOf(random, "READY", "CONNECTING", "IDLE", "TRANSIENT_FAILURE", "TRANSIENT_FAILURE")
	g.sticky[name] = state == "CONNECTING" && (g.last[name] == "TRANSIENT_FAILURE" || g.sticky[name])
	g.last[name] = state
	return "report " + name + " " + state
}

func (g *targetGenerator) explains(ours, theirs string) string {
	if childrenOf(ours) != childrenOf(theirs) {
		return ""
	}
	if stateOf(ours) == "IDLE" && stateOf(theirs) == "IDLE" {
		var idle []string
		for name, state := range g.last {
			if state == "IDLE" {
				idle = append(idle, "fail: "+name+" idle")
			}
		}
		slices.Sort(idle)
		if callsOf(ours) == strings.Join(idle, ", ") && callsOf(theirs) == "queue" {
			return "w-idle"
		}
		return ""
	}
	anySticky := slices.Contains(slices.Collect(maps.Values(g.sticky)), true)
	if anySticky && g.failedOnly(ours) && (stateOf(theirs) == "CONNECTING" || g.queuesForSome(theirs)) {
		return "w-sticky"
	}
	return ""
}

// failedOnly returns whether shown is what is due where a child that failed and
// reports CONNECTING still counts as failed: TRANSIENT_FAILURE of all, or what the
// others make of it.
func (g *targetGenerator) failedOnly(shown string) bool {
	var idle bool
	for _, name := range g.all {
		switch g.last[name] {
		case "READY":
			return false
		case "", "CONNECTING":
			if !g.sticky[name] {
				return false // both would be CONNECTING
			}
		case "IDLE":
			idle = true
		}
	}
	if idle {
		return stateOf(shown) == "IDLE"
	}
	want := []string{}
	for _, name := range g.all {
		want = append(want, "fail: "+name+" refused")
	}
	return stateOf(shown) == "TRANSIENT_FAILURE" && callsOf(shown) == strings.Join(want, ", ")
}

// queuesForSome returns whether calls wait for a child that counts as failed.
func (g *targetGenerator) queuesForSome(shown string) bool {
	return stateOf(shown) == "TRANSIENT_FAILURE" && strings.Contains(callsOf(shown), "queue")
}
