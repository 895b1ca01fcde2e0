package explain

import (
	"cmp"
	"slices"
	"sort"

	"github.com/understudy-lb/understudy/internal/topology"
)

// Tier tells where the calls of a priority go when it fails. All higher priorities are down.
type Tier struct {
	Priority  uint32 `json:"priority"`
	Cluster   string `json:"cluster,omitempty"`
	Endpoints int    `json:"endpoints"`
	// Standby means that the priority is connected while priority 0 is in use.
	Standby bool `json:"standby,omitempty"`
	// LeftAfter is the number of endpoints that must fail before calls leave the priority. The
	// endpoints of the largest weight fail first.
	LeftAfter int `json:"left_after"`
	// Next is the priority that then receives the calls, or nil if calls fail.
	Next *uint32 `json:"next"`
	// ErrorsTo is the priority that receives the calls if all calls to this one fail. It is this
	// priority itself if the calls stay.
	ErrorsTo uint32 `json:"errors_to"`
}

type tiers struct {
	simulation *simulation
	settings   topology.Settings
	result     *Result
	child      []string
}

// addTiers adds a Tier for each priority. It adds none if near groups split the priorities.
func (r *Result) addTiers(s *simulation, settings topology.Settings) {
	if settings.Near().Prefer != "" {
		return // near groups have other numbers than the priorities in the file
	}
	t := tiers{simulation: s, settings: settings, result: r}
	for _, priority := range s.priorities {
		t.child = append(t.child, priority.Child)
	}
	for i := range t.child {
		tier := t.measure(uint32(i))
		if len(s.plan.first) > 1 {
			tier.Cluster = s.plan.clusters[i]
		}
		r.Tiers = append(r.Tiers, tier)
	}
}

func (t *tiers) measure(priority uint32) Tier {
	tier := Tier{Priority: priority, ErrorsTo: priority}
	endpoints := t.heaviest(priority)
	tier.Endpoints = len(endpoints)
	t.goTo(0, nil)
	tier.Standby = priority > 0 && t.simulation.isStandby(t.child[priority])
	if tier.Endpoints == 0 {
		tier.Next = t.goTo(priority, nil)
		return tier
	}
	tier.LeftAfter = tier.Endpoints
	if t.settings.MinReady > 0 { // without MinReady, calls leave with the last endpoint
		tier.LeftAfter = 1 + sort.Search(tier.Endpoints-1, func(i int) bool {
			to := t.goTo(priority, endpoints[:i+1])
			return to == nil || *to != priority
		})
	}
	tier.Next = t.goTo(priority, endpoints[:tier.LeftAfter])
	if t.settings.OutlierDetection {
		tier.ErrorsTo = t.errorsTo(priority)
	}
	return tier
}

// heaviest returns the endpoints of a priority that may receive calls, the largest weight first.
func (t *tiers) heaviest(priority uint32) []*Endpoint {
	sums := make(map[string]uint64)
	connected := make(map[partAddress]bool) // endpoints in the tree, which may be a subset
	for _, e := range t.simulation.plan.tree.Endpoints {
		connected[partAddressOf(e.Addresses[0])] = true
	}
	var all []*Endpoint
	for i := range t.result.Endpoints {
		e := &t.result.Endpoints[i]
		if e.Priority == priority && e.LocalityWeight > 0 && e.Health == "" && connected[partAddress{e.part, e.Address}] {
			all = append(all, e)
			sums[e.Locality] += uint64(e.Weight)
		}
	}
	part := func(e *Endpoint) float64 {
		return float64(e.LocalityWeight) * float64(e.Weight) / float64(sums[e.Locality])
	}
	slices.SortStableFunc(all, func(a, b *Endpoint) int { return cmp.Compare(part(b), part(a)) })
	return all
}

func (t *tiers) above(priority uint32) hypothesis {
	return hypothesis{down: func(e *Endpoint, _ string) bool { return e.Priority < priority }}
}

// goTo returns the priority that receives the calls when all higher priorities are down and the
// given priority has lost some endpoints. It returns nil if calls fail.
func (t *tiers) goTo(priority uint32, lost []*Endpoint) *uint32 {
	isLost := make(map[*Endpoint]bool, len(lost))
	for _, e := range lost {
		isLost[e] = true
	}
	down := func(e *Endpoint, _ string) bool { return e.Priority < priority || isLost[e] }
	return t.priorityOf(t.simulation.run(t.above(priority), hypothesis{down: down}))
}

// errorsTo returns the priority that receives the calls when all higher priorities are down and all
// calls to the given priority fail.
func (t *tiers) errorsTo(priority uint32) uint32 {
	failing := t.above(priority)
	failing.failing = t.child[priority]
	if to := t.priorityOf(t.simulation.run(t.above(priority), failing)); to != nil {
		return *to
	}
	return priority
}

func (t *tiers) priorityOf(o outcome) *uint32 {
	if !o.ready {
		return nil
	}
	priority := uint32(slices.Index(t.child, o.inUse))
	return &priority
}
