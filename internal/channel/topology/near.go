package topology

import (
	"math"
	"slices"
	"strings"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/config/options"
	"github.com/understudy-lb/understudy/internal/net/location"
)

// Near says which endpoints of a priority to prefer because they're close. The zero value has no
// preference.
type Near struct {
	// Prefer is the option of the same name: "zone", "hints" or "".
	Prefer string
	Place  location.Location
}

// Near returns the preference in the settings. Call it for each answer, because we may learn the
// client's location later.
func (s Settings) Near() Near {
	if s.Prefer == "" || s.Prefer == "none" {
		return Near{}
	}
	return Near{Prefer: s.Prefer, Place: options.Settings(s).Location()}
}

// MissingFields names the fields that the preference needs, e.g. "zone or region", if not a single
// endpoint in the answer has them. Otherwise, or if we don't know where the client is, it returns
// "".
func (n Near) MissingFields(a *discovery.Answer) string {
	needed := map[string]bool{"hints": n.Prefer == "hints", "zone": n.Prefer == "zone" && n.Place.Zone != "", "region": n.Prefer == "zone" && n.Place.Region != ""}
	for _, p := range a.Priorities {
		for _, l := range p.Localities {
			hasHints := func(e discovery.Endpoint) bool { return len(e.ForZones)+len(e.ForNodes) > 0 }
			if needed["hints"] && slices.ContainsFunc(l.Endpoints, hasHints) || needed["zone"] && l.Zone != "" || needed["region"] && l.Region != "" {
				return ""
			}
		}
	}
	return strings.Join(slices.DeleteFunc([]string{"zone", "region", "hints"}, func(field string) bool { return !needed[field] }), " or ")
}

// nearness orders endpoints by distance. If we go by hints, there are only two levels: nearest and
// elsewhere.
type nearness int

const (
	nearest nearness = iota
	sameRegion
	elsewhere
)

// The endpoints in a group can be at different distances. We name the group after the farthest.
var nearNames = map[string][elsewhere + 1]string{
	"zone":  {"same zone", "same region", "elsewhere"},
	"hints": {"hinted", "", "not hinted"},
}

type group struct {
	discovery.Priority
	sourcePriority int    // index of the priority we split
	name           string // shown to users, e.g. "same zone"; "" if the priority wasn't split
}

// split divides each priority by distance:
//
//	zone a of region r:  {r/a: 1 2, r/b: 3, s/c: 4}  ->  {r/a: 1 2}  {r/b: 3}  {s/c: 4}
//
// There are no empty groups, and a group without any usable endpoint is merged into the next one.
func (n Near) split(c *Checked) (groups []group) {
	for i, p := range c.Priorities {
		parts := n.groups(p)
		if len(parts) < 2 {
			parts = []group{{Priority: p}}
		}
		for _, g := range parts {
			g.sourcePriority = i
			groups = append(groups, g)
		}
	}
	return groups
}

func (n Near) groups(p discovery.Priority) (groups []group) {
	if n.Prefer == "" || !n.Place.Serves(n.Prefer) {
		return nil
	}
	distance := n.distance(p)
	var usable [elsewhere + 1]bool
	for _, l := range p.Localities {
		for k := range l.Endpoints {
			d := distance(&l, &l.Endpoints[k])
			usable[d] = usable[d] || isUsable(l.Endpoints[k].Health)
		}
	}
	begin := nearest
	for end := nearest; end <= elsewhere; end++ {
		if !usable[end] && end < elsewhere {
			continue
		}
		g := group{name: nearNames[n.Prefer][end]}
		var weights []float64
		for _, l := range p.Localities {
			whole, share, sum := l.Endpoints, 0.0, 0.0
			isIn := func(e *discovery.Endpoint) bool { d := distance(&l, e); return begin <= d && d <= end }
			l.Endpoints = nil
			for k := range whole {
				e, weight := &whole[k], usableWeight(&whole[k])
				if sum += weight; isIn(e) {
					share += weight
					l.Endpoints = append(l.Endpoints, *e)
				}
			}
			if len(l.Endpoints) == 0 && (len(whole) > 0 || !isIn(nil)) {
				continue
			}
			if sum == 0 {
				share, sum = 1, 1
			}
			g.Localities, weights = append(g.Localities, l), append(weights, float64(l.Weight)*share/sum)
		}
		if len(g.Localities) > 0 {
			setWeights(g.Localities, weights)
			groups = append(groups, g)
		}
		begin = end + 1
	}
	return groups
}

// distance returns a function that tells how far away an endpoint is. For a locality without
// endpoints, the endpoint is nil.
//
// We follow node hints if every usable endpoint has some and at least one of them names our node.
// Failing that, we try zone hints in the same way.
func (n Near) distance(p discovery.Priority) func(*discovery.Locality, *discovery.Endpoint) nearness {
	if n.Prefer == "zone" {
		return func(l *discovery.Locality, _ *discovery.Endpoint) nearness {
			switch place := (location.Location{Region: l.Region, Zone: l.Zone}); {
			case n.Place.SameZone(place):
				return nearest
			case n.Place.SameRegion(place):
				return sameRegion
			}
			return elsewhere
		}
	}
	hintsOf, client := func(e *discovery.Endpoint) []string { return e.ForNodes }, n.Place.Node
	if !areHintsUseful(p, hintsOf, client) {
		hintsOf, client = func(e *discovery.Endpoint) []string { return e.ForZones }, n.Place.Zone
	}
	useful := areHintsUseful(p, hintsOf, client)
	return func(_ *discovery.Locality, e *discovery.Endpoint) nearness {
		if useful && e != nil && slices.Contains(hintsOf(e), client) {
			return nearest
		}
		return elsewhere
	}
}

func areHintsUseful(p discovery.Priority, hintsOf func(*discovery.Endpoint) []string, client string) bool {
	found := false
	for e := range endpointsOf(p) {
		if isUsable(e.Health) {
			if len(hintsOf(e)) == 0 {
				return false
			}
			found = found || slices.Contains(hintsOf(e), client)
		}
	}
	return found && client != ""
}

// Weights have to be integers, so we scale up fractional ones to make rounding errors small.
func setWeights(localities []discovery.Locality, weights []float64) {
	factor, sum := 1.0, 0.0
	for _, w := range weights {
		if sum += w; w != math.Trunc(w) {
			factor = 1 << 16
		}
	}
	factor = max(1, min(factor, math.Trunc(maxWeight/2/sum)))
	for j, w := range weights {
		localities[j].Weight = uint32(max(1, w*factor))
	}
}

func usableWeight(e *discovery.Endpoint) float64 {
	if !isUsable(e.Health) {
		return 0
	}
	return float64(weightOf(e))
}
