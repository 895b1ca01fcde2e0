package explain

import (
	"cmp"
	"slices"
	"sort"

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
	// LeftAfter is the number of endpoints that must fail before calls leave the priority. The
	// endpoints with the largest weights fail first.
	LeftAfter int `json:"left_after"`
	// Next is the priority that receives the calls after that, or nil if calls fail.
	Next *uint32 `json:"next"`
	// ErrorsTo is the priority that receives the calls if all calls to Priority fail. If the calls
	// do not move, it is equal to Priority.
	ErrorsTo uint32 `json:"errors_to"`
}

type tiers struct {
	simulation *simulation
	settings   topology.Settings
	result     *Result
	children   []string
}

// addTiers adds a Tier for each priority. It adds none if near groups split the priorities.
func (r *Result) addTiers(s *simulation, settings topology.Settings) {
	if settings.Near().Prefer != "" {
		return // the numbers of near groups differ from the priorities in the file
	}
	t := tiers{simulation: s, settings: settings, result: r}
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
	tier := PriorityResult{Priority: priority, ErrorsTo: priority}
	endpoints := t.endpointsByWeight(priority)
	tier.Endpoints = len(endpoints)
	t.priorityAfter(0, nil)
	tier.Standby = priority > 0 && t.simulation.isStandby(t.children[priority])
	if tier.Endpoints == 0 {
		tier.Next = t.priorityAfter(priority, nil)
		return tier
	}
	tier.LeftAfter = tier.Endpoints
	if t.settings.MinReady > 0 { // without MinReady, calls leave the priority when its last endpoint fails
		tier.LeftAfter = 1 + sort.Search(tier.Endpoints-1, func(i int) bool {
			next := t.priorityAfter(priority, endpoints[:i+1])
			return next == nil || *next != priority
		})
	}
	tier.Next = t.priorityAfter(priority, endpoints[:tier.LeftAfter])
	if t.settings.OutlierDetection {
		tier.ErrorsTo = t.errorsTo(priority)
	}
	return tier
}

// endpointsByWeight returns the endpoints of a priority that may receive calls, sorted by
// descending weight.
func (t *tiers) endpointsByWeight(priority uint32) []*Endpoint {
	sums := make(map[string]uint64)
	connected := make(map[mechanismAddress]bool) // by address of endpoints in the tree, which may be a subset
	for _, e := range t.simulation.plan.tree.Endpoints {
		connected[mechanismAddressOf(e.Addresses[0])] = true
	}
	var endpoints []*Endpoint
	for i := range t.result.Endpoints {
		e := &t.result.Endpoints[i]
		if e.Priority == priority && e.LocalityWeight > 0 && e.Health == "" && connected[mechanismAddress{e.mechanism, e.Address}] {
			endpoints = append(endpoints, e)
			sums[e.Locality] += uint64(e.Weight)
		}
	}
	share := func(e *Endpoint) float64 {
		return float64(e.LocalityWeight) * float64(e.Weight) / float64(sums[e.Locality])
	}
	slices.SortStableFunc(endpoints, func(a, b *Endpoint) int { return cmp.Compare(share(b), share(a)) })
	return endpoints
}

func (t *tiers) higherDown(priority uint32) hypothesis {
	return hypothesis{down: func(e *Endpoint, _ string) bool { return e.Priority < priority }}
}

// priorityAfter returns the priority that receives the calls when all higher priorities and the
// given endpoints of this priority are down. It returns nil if calls fail.
func (t *tiers) priorityAfter(priority uint32, failed []*Endpoint) *uint32 {
	isFailed := make(map[*Endpoint]bool, len(failed))
	for _, e := range failed {
		isFailed[e] = true
	}
	down := func(e *Endpoint, _ string) bool { return e.Priority < priority || isFailed[e] }
	return t.priorityOf(t.simulation.run(t.higherDown(priority), hypothesis{down: down}))
}

// errorsTo returns the priority that receives the calls when all higher priorities are down and all
// calls to the given priority fail.
func (t *tiers) errorsTo(priority uint32) uint32 {
	failing := t.higherDown(priority)
	failing.failing = t.children[priority]
	if next := t.priorityOf(t.simulation.run(t.higherDown(priority), failing)); next != nil {
		return *next
	}
	return priority
}

func (t *tiers) priorityOf(o outcome) *uint32 {
	if !o.ready {
		return nil
	}
	priority := uint32(slices.Index(t.children, o.inUse))
	return &priority
}
