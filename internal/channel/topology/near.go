package topology

import (
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/understudy-lb/understudy/internal/config/options"
	"github.com/understudy-lb/understudy/internal/net/location"
)

// Near configures which endpoints of a priority are preferred because of their location. The zero
// value has no preference.
type Near struct {
	// Prefer is the option of the same name: "zone", "hints" or "".
	Prefer string
	Place  location.Location
}

// Near returns the preference in the settings. It must be called for each answer, because the
// client's location may become known later.
func (s Settings) Near() Near {
	if s.Prefer == "" || s.Prefer == "none" {
		return Near{}
	}
	return Near{Prefer: s.Prefer, Place: options.Settings(s).Location()}
}

// MissingFields returns the names of the fields that the preference needs, as in "zone or region",
// if no endpoint of the answer has any of these fields. It returns "" if an endpoint has one of
// them, or if the client's location is unknown.
func (n Near) MissingFields(a *Answer) string {
	needed := map[string]bool{"hints": n.Prefer == "hints", "zone": n.Prefer == "zone" && n.Place.Zone != "", "region": n.Prefer == "zone" && n.Place.Region != ""}
	for _, p := range a.Priorities {
		for _, l := range p.Localities {
			hasHints := slices.ContainsFunc(l.Endpoints, func(e Endpoint) bool { return len(e.ForZones)+len(e.ForNodes) > 0 })
			if needed["hints"] && hasHints || needed["zone"] && l.Zone != "" || needed["region"] && l.Region != "" {
				return ""
			}
		}
	}
	return strings.Join(slices.DeleteFunc([]string{"zone", "region", "hints"}, func(field string) bool { return !needed[field] }), " or ")
}

// nearness is the distance of an endpoint from the client. Lower values are nearer. With hints, it is
// nearest for the endpoints that the hints prefer, and elsewhere for all others.
type nearness int

const (
	nearest nearness = iota
	sameRegion
	elsewhere
)

// nearNames are the names of groups for users, by the nearness of the farthest endpoints.
var nearNames = map[string][elsewhere + 1]string{
	"zone":  {"same zone", "same region", "elsewhere"},
	"hints": {"hinted", "", "not hinted"},
}

// group is a near group: the endpoints of a priority at the same distance from the client.
type group struct {
	Priority
	sourcePriority int    // index of the priority that was split
	name           string // the name for users, such as "same zone", or "" if the priority was not split
}

// split divides each priority of an answer into near groups.
//
//	zone a of region r:  {r/a: 1 2, r/b: 3, s/c: 4}  ->  {r/a: 1 2}  {r/b: 3}  {s/c: 4}
//
// It omits empty groups. If no endpoint of a group can receive calls, it merges the group with the
// next group.
func (n Near) split(c *Checked) (groups []group) {
	for i, p := range c.Priorities {
		split := n.groups(p)
		if len(split) < 2 {
			split = []group{{Priority: p}}
		}
		for _, g := range split {
			g.sourcePriority = i
			groups = append(groups, g)
		}
	}
	return groups
}

func (n Near) groups(p Priority) (groups []group) {
	if n.Prefer == "" {
		return nil
	}
	near, usable := n.measure(p)
	var merged [elsewhere + 1]bool // the distances of the current group
	for farthest := nearest; farthest <= elsewhere; farthest++ {
		merged[farthest] = true
		if !usable[farthest] && farthest < elsewhere {
			continue
		}
		g := group{name: nearNames[n.Prefer][farthest]}
		var shares []share
		for j, l := range p.Localities {
			whole := l.Endpoints
			if l.Endpoints = nil; len(whole) == 0 && !merged[near[j][0]] {
				continue
			}
			for k := range whole {
				if merged[near[j][k]] {
					l.Endpoints = append(l.Endpoints, whole[k])
				}
			}
			if len(l.Endpoints) > 0 || len(whole) == 0 {
				g.Localities = append(g.Localities, l)
				shares = append(shares, share{usableWeight(l.Endpoints), usableWeight(whole)})
			}
		}
		if len(g.Localities) > 0 {
			scaleWeights(g.Localities, shares)
			groups = append(groups, g)
		}
		clear(merged[:])
	}
	return groups
}

// measure returns the nearness of each endpoint of each locality, and at which distances there are
// usable endpoints. For a locality without endpoints, it returns a single value.
func (n Near) measure(p Priority) (near [][]nearness, usable [elsewhere + 1]bool) {
	var hinted map[string]func(*Endpoint) bool
	if n.Prefer == "hints" {
		hinted = n.hints(p)
	}
	near = make([][]nearness, len(p.Localities))
	for j, l := range p.Localities {
		place, ofLocality := location.Location{Region: l.Region, Zone: l.Zone}, elsewhere
		switch {
		case n.Prefer == "hints":
		case n.Place.SameZone(place):
			ofLocality = nearest
		case n.Place.SameRegion(place):
			ofLocality = sameRegion
		}
		near[j] = slices.Repeat([]nearness{ofLocality}, max(1, len(l.Endpoints)))
		for k := range l.Endpoints {
			e := &l.Endpoints[k]
			if names := hinted[family(e)]; names != nil && names(e) {
				near[j][k] = nearest
			}
			usable[near[j][k]] = usable[near[j][k]] || isUsable(e.Health)
		}
	}
	return near, usable
}

// hints returns a function for each address family whose hints can be used. The function reports
// whether an endpoint's hints prefer the endpoint for this client. Hints for nodes are used if all
// usable endpoints of the family have them, and at least one of them names the client's node.
// Otherwise, hints for zones are used if they meet the same conditions.
func (n Near) hints(p Priority) map[string]func(*Endpoint) bool {
	families := make(map[string][]*Endpoint)
	for e := range endpointsOf(p) {
		if isUsable(e.Health) {
			families[family(e)] = append(families[family(e)], e)
		}
	}
	hinted := make(map[string]func(*Endpoint) bool)
	for name, endpoints := range families {
		for _, kind := range []struct {
			clientName string
			names      func(*Endpoint) []string
		}{
			{n.Place.Node, func(e *Endpoint) []string { return e.ForNodes }},
			{n.Place.Zone, func(e *Endpoint) []string { return e.ForZones }},
		} {
			namesClient := func(e *Endpoint) bool { return slices.Contains(kind.names(e), kind.clientName) }
			hasNoHint := func(e *Endpoint) bool { return len(kind.names(e)) == 0 }
			if kind.clientName != "" && slices.ContainsFunc(endpoints, namesClient) && !slices.ContainsFunc(endpoints, hasNoHint) {
				hinted[name] = namesClient
				break
			}
		}
	}
	return hinted
}

// family returns the address family of an endpoint's first address, or "" if the address contains
// no IP address.
func family(e *Endpoint) string {
	if len(e.Addresses) == 0 {
		return ""
	}
	host, _, _ := net.SplitHostPort(e.Addresses[0])
	ip, err := netip.ParseAddr(host)
	switch {
	case err != nil:
		return ""
	case ip.Unmap().Is4():
		return "IPv4"
	}
	return "IPv6"
}

// share is the weight of a locality's usable endpoints in a group, and of all of them.
type share struct{ inGroup, total uint64 }

// scaleWeights gives each locality of a group the share of its weight that belongs to its endpoints in
// the group. If the results are not whole, it multiplies the weights of all localities by a factor, so
// that rounding has little effect.
func scaleWeights(localities []Locality, shares []share) {
	factor, sum := uint64(1), uint64(0)
	for j, l := range localities {
		sum += uint64(l.Weight)
		if of := shares[j]; of.total > 0 && uint64(l.Weight)*of.inGroup%of.total > 0 {
			factor = 1 << 16
		}
	}
	factor = max(1, min(factor, maxWeight/2/sum))
	for j := range localities {
		if of, l := shares[j], &localities[j]; of.total > 0 {
			l.Weight = uint32(max(1, float64(uint64(l.Weight)*factor)*float64(of.inGroup)/float64(of.total)))
		}
	}
}

func usableWeight(endpoints []Endpoint) (sum uint64) {
	for k := range endpoints {
		if isUsable(endpoints[k].Health) {
			sum += uint64(weightOf(&endpoints[k]))
		}
	}
	return sum
}
