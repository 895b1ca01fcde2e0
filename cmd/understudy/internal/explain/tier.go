package explain

import (
	"slices"

	"github.com/understudy-lb/understudy/internal/channel/topology"
)

// PriorityResult describes where calls go when a priority fails while all higher priorities are
// down.
type PriorityResult struct {
	Priority  uint32 `json:"priority"`
	Cluster   string `json:"cluster,omitempty"`
	Endpoints int    `json:"endpoints"`
	// Standby means that the priority is connected while priority 0 is in use.
	Standby bool `json:"standby,omitempty"`
	// Next is the priority that receives the calls when all endpoints of this one are down, or nil if
	// calls fail. With overflow, it also receives those that this priority cannot carry.
	Next *uint32 `json:"next"`
}

type tiers struct {
	simulation *simulation
	result     *Result
	children   []string
}

// addTiers adds a PriorityResult for each priority. It adds none if near groups split the priorities.
func (r *Result) addTiers(s *simulation, settings topology.Settings) {
	if settings.Near().Prefer != "" {
		return // the numbers of near groups differ from the priorities in the file
	}
	t := tiers{simulation: s, result: r}
	for _, priority := range s.priorities {
		t.children = append(t.children, priority.Child)
	}
	for i := range t.children {
		tier := t.measure(uint32(i))
		if len(s.plan.firstPriority) > 1 {
			tier.Cluster = s.plan.clusters[i]
		}
		r.Tiers = append(r.Tiers, tier)
	}
}

func (t *tiers) measure(priority uint32) PriorityResult {
	tier := PriorityResult{Priority: priority, Endpoints: t.endpoints(priority)}
	t.next(0)
	tier.Standby = priority > 0 && t.simulation.isStandby(t.children[priority])
	tier.Next = t.next(priority + 1)
	return tier
}

// endpoints returns the number of endpoints of a priority that may receive calls.
func (t *tiers) endpoints(priority uint32) (n int) {
	connected := make(map[mechanismAddress]bool) // by address of endpoints in the tree, which may be a subset
	for _, e := range t.simulation.plan.tree.Endpoints {
		connected[mechanismAddressOf(e.Addresses[0])] = true
	}
	for _, e := range t.result.Endpoints {
		if e.Priority == priority && e.LocalityWeight > 0 && e.Health == "" && connected[mechanismAddress{e.mechanism, e.Address}] {
			n++
		}
	}
	return n
}

// next returns the priority that receives the calls when all priorities above first are down, or nil
// if calls fail.
func (t *tiers) next(first uint32) *uint32 {
	o := t.simulation.run(hypothesis{down: func(e *Endpoint, _ string) bool { return e.Priority < first }})
	if !o.ready {
		return nil
	}
	priority := uint32(slices.Index(t.children, o.inUse))
	return &priority
}
