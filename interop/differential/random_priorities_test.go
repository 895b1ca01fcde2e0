package differential

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestRandomPriorities(t *testing.T) {
	compare(t, priorities, func() generator { return &priorityGenerator{last: reports{}} }, "p-connecting", "p-timeout")
}

// priorityGenerator draws updates, reports and waits for priority. It keeps to
// schedules in which the two differ for the moment only, by the rows p-connecting and
// p-timeout. Those whose differences last have their rows alone:
//
//   - priorities are added and removed at the lower end (p-deactivate-lower), and
//     removed children are neither retained (p-removed) nor deactivated before
//     (p-removed-deactivated);
//   - no child is deactivated while it is CONNECTING (p-timer-runs-on), and none
//     reports CONNECTING while it is deactivated (p-sticky-failure).
type priorityGenerator struct {
	last  reports
	names []string
}

var allPriorities = []string{"a", "b", "c", "d"}

func (g *priorityGenerator) next(random *rand.Rand, live []string) string {
	g.last.forget(live)
	if g.names == nil || random.IntN(12) == 0 {
		names := allPriorities[:random.IntN(len(allPriorities)+1)]
		if !g.removesDeactivated(names, live) {
			g.names = names
			g.last.forget(g.names)
			return "update " + strings.Join(g.names, " ")
		}
	}
	if len(live) == 0 || random.IntN(6) == 0 {
		return fmt.Sprintf("wait %v", anyOf(random, time.Second, 4*time.Second, 5*time.Second, 10*time.Second, 14*time.Minute, 15*time.Minute))
	}
	for {
		name := anyOf(random, live...)
		state := anyOf(random, "READY", "CONNECTING", "IDLE", "TRANSIENT_FAILURE", "TRANSIENT_FAILURE", "TRANSIENT_FAILURE")
		if g.lasting(name, state, live) {
			continue
		}
		g.last[name] = state
		return "report " + name + " " + state
	}
}

// removesDeactivated returns whether an update to names would remove a child that may
// be deactivated already.
func (g *priorityGenerator) removesDeactivated(names, live []string) bool {
	for _, name := range live {
		for _, higher := range live {
			if !slices.Contains(names, name) && higher < name && g.last[higher] != "TRANSIENT_FAILURE" {
				return true
			}
		}
	}
	return false
}

// lasting returns whether the report would lead to a difference that lasts.
func (g *priorityGenerator) lasting(name, state string, live []string) bool {
	for _, other := range live {
		higher := other < name
		switch {
		case higher && state == "CONNECTING" && g.last[other] != "TRANSIENT_FAILURE":
			return true // name may be deactivated
		case !higher && other != name && usable(state) && connecting(g.last[other]):
			return true // other would be deactivated while it connects
		}
	}
	return false
}

func usable(state string) bool     { return state == "READY" || state == "IDLE" }
func connecting(state string) bool { return state == "CONNECTING" || state == "" }

func (g *priorityGenerator) explains(ours, theirs string) string {
	if childrenOf(ours) != childrenOf(theirs) || slices.ContainsFunc(g.names, func(name string) bool { return usable(g.last[name]) }) {
		return ""
	}
	lowest := g.names[len(g.names)-1]
	switch {
	case ours == "TRANSIENT_FAILURE fail: did not connect; children "+childrenOf(ours):
		if connecting(g.last[lowest]) && theirs == "CONNECTING queue; children "+childrenOf(theirs) {
			return "p-timeout"
		}
	case ours == "CONNECTING queue; children "+childrenOf(ours):
		above := slices.ContainsFunc(g.names[:len(g.names)-1], func(name string) bool { return g.last[name] == "CONNECTING" })
		if above && theirs == "TRANSIENT_FAILURE fail: "+lowest+" refused; children "+childrenOf(theirs) {
			return "p-connecting"
		}
	}
	return ""
}
