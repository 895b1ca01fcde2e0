package topology

import (
	"maps"
	"math"
	"slices"

	"github.com/understudy-lb/understudy/internal/core/weightedtarget"
	"github.com/understudy-lb/understudy/internal/lbconfig"
	"github.com/understudy-lb/understudy/internal/location"
)

type zone struct {
	region, name string
	localities   []*Locality
	capacity     uint64
	listed       bool // the zone has endpoints, perhaps only unhealthy ones
}

// spread is the configuration for balancing the calls of a group between zones.
type spread struct {
	own      string // the client's zone, or "" if it is not in zones
	zones    map[string]lbconfig.BalanceZone
	of       map[string]inZone
	reserves bool // the group also contains the localities of the next group, as reserves
}

type inZone struct {
	zone     string
	capacity uint64
}

// balanced splits a priority into two groups. In the first one, calls stay in the client's zone as
// far as all endpoints can still get the same load. The second group consists of the zones that get
// no calls in the first group. They are also its reserves: they get calls when enough endpoints of
// the first group have failed.
func (n Near) balanced(p *Priority) []group {
	if n.Place.Zone == "" {
		return []group{{Priority: *p}}
	}
	zones := zonesOf(p)
	shares, first := n.shares(zones)
	var spare uint64 // total capacity of the zones that get no calls in the first group
	for i, z := range zones {
		if shares[i] == 0 {
			spare += z.capacity
		}
	}
	// The second group is configured without callers, so its zones share the calls by capacity.
	second := &spread{zones: make(map[string]lbconfig.BalanceZone), of: first.of}
	share, rest := group{name: "balanced", spread: first}, group{name: "other zones", spread: second}
	for i, z := range zones {
		part, of, to := shares[i], z.capacity, &share
		if part == 0 {
			part, of, to = 1, spare, &rest
			second.zones[z.key()] = lbconfig.BalanceZone{}
		}
		for _, l := range z.localities {
			l := *l
			l.Weight = fraction(part * float64(usableWeight(&l)) / float64(max(of, 1)))
			to.Localities = append(to.Localities, l)
		}
	}
	switch {
	case len(share.Localities) == 0:
		return []group{{Priority: *p}}
	case len(rest.Localities) == 0:
		return []group{share}
	}
	first.reserves = true
	return []group{share, rest}
}

// fraction converts a share from 0 to 1 to a weight of up to 2^30. The weight is at least 1.
func fraction(of float64) uint32 { return uint32(max(1, math.Round(of*(1<<30)))) }

// key identifies the zone. Zones with the same name in different regions have different keys.
func (z *zone) key() string { return LocalityName(z.region, z.name, "") }

// shares returns the share of the calls that each zone gets, and the configuration that makes the
// policy use these shares.
func (n Near) shares(zones []zone) ([]float64, *spread) {
	s := &spread{zones: make(map[string]lbconfig.BalanceZone), of: make(map[string]inZone)}
	own := -1
	var capacity, callers []float64
	add := func(key string, ofZone, from float64) {
		capacity, callers = append(capacity, ofZone), append(callers, from)
		s.zones[key] = lbconfig.BalanceZone{Callers: from}
	}
	for i, z := range zones {
		if own < 0 && n.Place.SameZone(location.Location{Region: z.region, Zone: z.name}) {
			own, s.own = i, z.key()
		}
		from := n.Callers[z.name]
		if n.Callers == nil && z.listed {
			from = 1
		}
		add(z.key(), float64(z.capacity), from)
		for _, l := range z.localities {
			s.of[NameOf(l)] = inZone{z.key(), usableWeight(l)}
		}
	}
	for _, name := range n.without(zones) {
		add(LocalityName("", name, ""), 0, n.Callers[name])
	}
	return weightedtarget.Shares(capacity, callers, own)[:len(zones)], s
}

// without returns the names of the zones that have callers but are not in zones.
func (n Near) without(zones []zone) []string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(n.Callers)) {
		if !slices.ContainsFunc(zones, func(z zone) bool { return z.name == name }) {
			names = append(names, name)
		}
	}
	return names
}

// Unnamed returns the zones with configured callers in which the answer has no endpoint.
func (n Near) Unnamed(a *Answer) []string {
	var zones []zone
	for i := range a.Priorities {
		zones = append(zones, zonesOf(&a.Priorities[i])...)
	}
	return n.without(zones)
}

func zonesOf(p *Priority) []zone {
	var zones []zone
	for j := range p.Localities {
		l := &p.Localities[j]
		i := slices.IndexFunc(zones, func(z zone) bool { return z.region == l.Region && z.name == l.Zone })
		if i < 0 {
			i, zones = len(zones), append(zones, zone{region: l.Region, name: l.Zone})
		}
		z := &zones[i]
		z.localities = append(z.localities, l)
		z.capacity += usableWeight(l)
		z.listed = z.listed || len(l.Endpoints) > 0
	}
	return zones
}
