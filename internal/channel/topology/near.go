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
	// Prefer is the option of the same name: "zone", "node", "hints" or "".
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
	var region, zone, node, hints bool
	for i := range a.Priorities {
		for j := range a.Priorities[i].Localities {
			l := &a.Priorities[i].Localities[j]
			region, zone = region || l.Region != "", zone || l.Zone != ""
			for k := range l.Endpoints {
				e := &l.Endpoints[k]
				node, hints = node || e.Node != "", hints || len(e.ForZones)+len(e.ForNodes) > 0
			}
		}
	}
	var missing []string
	for _, field := range []struct {
		name            string
		needed, present bool
	}{
		{"node", n.Prefer == "node" && n.Place.Node != "", node},
		{"zone", n.Prefer != "hints" && n.Place.Zone != "", zone},
		{"region", n.Prefer != "hints" && n.Place.Region != "", region},
		{"hints", n.Prefer == "hints", hints},
	} {
		switch {
		case field.needed && field.present:
			return ""
		case field.needed:
			missing = append(missing, field.name)
		}
	}
	return strings.Join(missing, " or ")
}

// nearness is the distance of an endpoint from the client. Lower values are nearer. If Near.Prefer
// is "hints", it is sameNode for endpoints that the hints prefer, and elsewhere for all others.
type nearness int

const (
	sameNode nearness = iota
	sameZone
	sameRegion
	elsewhere
)

var nearNames = [...]string{sameNode: "same node", sameZone: "same zone", sameRegion: "same region", elsewhere: "elsewhere"}

// group is a near group: the endpoints of a priority at the same distance from the client.
type group struct {
	Priority
	sourcePriority int    // index of the priority that was split
	name           string // the name for users, such as "same zone", or "" if the priority was not split
}

// split divides each priority of an answer into near groups. It returns an answer whose priorities
// are the groups, and the groups in the same order. Without a preference, it returns a itself.
//
//	zone a of region r:  {r/a: 1 2, r/b: 3, s/c: 4}  ->  {r/a: 1 2}  {r/b: 3}  {s/c: 4}
//
// split omits empty groups. If no endpoint of a group can receive calls, it merges the group with
// the next group.
func (n Near) split(a *Answer) (*Answer, []group) {
	var groups []group
	for i := range a.Priorities {
		for _, g := range n.groups(&a.Priorities[i]) {
			g.sourcePriority = i
			groups = append(groups, g)
		}
	}
	if len(groups) == len(a.Priorities) {
		return a, groups
	}
	split := *a
	split.Priorities = nil
	for _, g := range groups {
		split.Priorities = append(split.Priorities, g.Priority)
	}
	return &split, groups
}

func (n Near) groups(p *Priority) []group {
	if n.Prefer == "" {
		return []group{{Priority: *p}}
	}
	near := n.measure(p)
	groupOf := merge(p, near)
	var groups []group
	for _, farthest := range slices.Compact(slices.Clone(groupOf[:])) {
		g := group{name: n.nameOf(farthest)}
		for j := range p.Localities {
			if l, isInGroup := localityIn(&p.Localities[j], near[j], func(of nearness) bool { return groupOf[of] == farthest }); isInGroup {
				g.Localities = append(g.Localities, l)
			}
		}
		if len(g.Localities) > 0 {
			scaleWeights(&g.Priority, p)
			groups = append(groups, g)
		}
	}
	if len(groups) < 2 {
		return []group{{Priority: *p}}
	}
	return groups
}

// nameOf returns the name of a group for users. farthest is the nearness of the group's farthest
// endpoints.
func (n Near) nameOf(farthest nearness) string {
	switch {
	case n.Prefer != "hints":
		return nearNames[farthest]
	case farthest == elsewhere:
		return "not hinted"
	}
	return "hinted"
}

// measure returns the nearness of each endpoint of each locality. For a locality without endpoints,
// it returns a single value.
func (n Near) measure(p *Priority) [][]nearness {
	var hinted map[string]func(*Endpoint) bool
	if n.Prefer == "hints" {
		hinted = n.hints(p)
	}
	near := make([][]nearness, len(p.Localities))
	for j := range p.Localities {
		l := &p.Localities[j]
		for k := range l.Endpoints {
			near[j] = append(near[j], n.nearnessOf(l, &l.Endpoints[k], hinted))
		}
		if len(l.Endpoints) == 0 {
			near[j] = []nearness{n.nearnessOf(l, &Endpoint{}, hinted)}
		}
	}
	return near
}

func (n Near) nearnessOf(l *Locality, e *Endpoint, hinted map[string]func(*Endpoint) bool) nearness {
	endpointLocation := location.Location{Region: l.Region, Zone: l.Zone, Node: e.Node}
	switch {
	case n.Prefer == "hints":
		if names := hinted[family(e)]; names != nil && names(e) {
			return sameNode
		}
		return elsewhere
	case n.Prefer == "node" && n.Place.SameNode(endpointLocation):
		return sameNode
	case n.Place.SameZone(endpointLocation):
		return sameZone
	case n.Place.SameRegion(endpointLocation):
		return sameRegion
	}
	return elsewhere
}

// hints returns a function for each address family whose hints can be used. The function reports
// whether an endpoint's hints prefer the endpoint for this client. Hints for nodes are used if all
// usable endpoints of the family have them, and at least one of them names the client's node.
// Otherwise, hints for zones are used if they meet the same conditions.
func (n Near) hints(p *Priority) map[string]func(*Endpoint) bool {
	families := make(map[string][]*Endpoint)
	for j := range p.Localities {
		for k := range p.Localities[j].Endpoints {
			if e := &p.Localities[j].Endpoints[k]; isUsable(e.Health) {
				families[family(e)] = append(families[family(e)], e)
			}
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

// merge returns the group of each nearness. A group is identified by the nearness of its farthest
// endpoints. If no endpoint at one nearness is usable, they are merged with those at the next.
func merge(p *Priority, near [][]nearness) (groupOf [elsewhere + 1]nearness) {
	var usable [elsewhere + 1]bool
	for j := range p.Localities {
		for k := range p.Localities[j].Endpoints {
			usable[near[j][k]] = usable[near[j][k]] || isUsable(p.Localities[j].Endpoints[k].Health)
		}
	}
	first := sameNode
	for at := sameNode; at <= elsewhere; at++ {
		if !usable[at] && at < elsewhere {
			continue
		}
		for ; first <= at; first++ {
			groupOf[first] = at
		}
	}
	return groupOf
}

// localityIn returns a copy of a locality that contains only the endpoints whose nearness is in a
// group. It returns false if no part of the locality is in the group.
func localityIn(l *Locality, near []nearness, isInGroup func(nearness) bool) (Locality, bool) {
	copied := *l
	copied.Endpoints = nil
	for k := range l.Endpoints {
		if isInGroup(near[k]) {
			copied.Endpoints = append(copied.Endpoints, l.Endpoints[k])
		}
	}
	return copied, len(copied.Endpoints) > 0 || len(l.Endpoints) == 0 && isInGroup(near[0])
}

// scaleWeights adapts the weights of the localities in g. If only some endpoints of a locality are
// in g, the locality gets only their share of its weight. The weights of all localities in g are
// multiplied by a factor, so that rounding has little effect.
func scaleWeights(g, original *Priority) {
	type share struct{ inGroup, total uint64 }
	shares, sum, hasPartial := make([]share, len(g.Localities)), uint64(0), false
	for j, l := range g.Localities {
		index := slices.IndexFunc(original.Localities, func(w Locality) bool { return NameOf(&w) == NameOf(&l) })
		shares[j] = share{usableWeight(&l), usableWeight(&original.Localities[index])}
		hasPartial = hasPartial || l.Weight > 0 && shares[j].inGroup != shares[j].total
		sum += uint64(l.Weight)
	}
	if !hasPartial {
		return
	}
	factor := max(1, min(1<<16, maxWeight/2/sum))
	for j := range g.Localities {
		l := &g.Localities[j]
		if w := uint64(l.Weight) * factor; shares[j].total > 0 && w > 0 {
			l.Weight = uint32(max(1, float64(w)*float64(shares[j].inGroup)/float64(shares[j].total)))
		}
	}
}

func usableWeight(l *Locality) (sum uint64) {
	for k := range l.Endpoints {
		if isUsable(l.Endpoints[k].Health) {
			sum += uint64(weightOf(&l.Endpoints[k]))
		}
	}
	return sum
}
