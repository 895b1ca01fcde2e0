package topology

import (
	"maps"
	"math"
	"slices"

	"github.com/understudy-lb/understudy/internal/config/lbconfig"
	"github.com/understudy-lb/understudy/internal/core/weightedtarget"
	"github.com/understudy-lb/understudy/internal/net/location"
)

type zone struct {
	region, name string
	localities   []*Locality
	capacity     uint64
	hasEndpoints bool // the zone has endpoints, perhaps only unhealthy ones
}

// spread is the configuration for balancing the calls of a group between zones.
type spread struct {
	clientZone    string // the client's zone, or "" if it is not in zones
	zones         map[string]lbconfig.BalanceZone
	localityZones map[string]localityZone // the zone and the capacity of each locality, by the locality's name
	hasReserves   bool                    // the group also contains the localities of the next group, as reserves
}

type localityZone struct {
	zone     string
	capacity uint64
}

// balancedGroups splits a priority into two groups. In the first group, as many calls as possible
// stay in the client's zone, provided that all endpoints get the same load. The second group
// consists of the zones that get no calls in the first group. These zones are also the reserves of
// the first group: they get calls when enough of its endpoints have failed.
func (n Near) balancedGroups(p *Priority) []group {
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
	// The second group is configured without callers, so its calls are divided by capacity.
	second := &spread{zones: make(map[string]lbconfig.BalanceZone), localityZones: first.localityZones}
	balancedGroup, otherGroup := group{name: "balanced", spread: first}, group{name: "other zones", spread: second}
	for i, z := range zones {
		zoneShare, total, target := shares[i], z.capacity, &balancedGroup
		if zoneShare == 0 {
			zoneShare, total, target = 1, spare, &otherGroup
			second.zones[z.key()] = lbconfig.BalanceZone{}
		}
		for _, l := range z.localities {
			l := *l
			l.Weight = fraction(zoneShare * float64(usableWeight(&l)) / float64(max(total, 1)))
			target.Localities = append(target.Localities, l)
		}
	}
	switch {
	case len(balancedGroup.Localities) == 0:
		return []group{{Priority: *p}}
	case len(otherGroup.Localities) == 0:
		return []group{balancedGroup}
	}
	first.hasReserves = true
	return []group{balancedGroup, otherGroup}
}

// fraction converts a share from 0 to 1 to a weight from 1 to 2^30.
func fraction(share float64) uint32 { return uint32(max(1, math.Round(share*(1<<30)))) }

// key identifies the zone. Zones with the same name in different regions have different keys.
func (z *zone) key() string { return LocalityName(z.region, z.name, "") }

// shares returns the share of the calls that each zone gets, and the configuration with which the
// policy uses these shares.
func (n Near) shares(zones []zone) ([]float64, *spread) {
	s := &spread{zones: make(map[string]lbconfig.BalanceZone), localityZones: make(map[string]localityZone)}
	clientIndex := -1
	var capacity, callers []float64
	add := func(key string, zoneCapacity, zoneCallers float64) {
		capacity, callers = append(capacity, zoneCapacity), append(callers, zoneCallers)
		s.zones[key] = lbconfig.BalanceZone{Callers: zoneCallers}
	}
	for i, z := range zones {
		if clientIndex < 0 && n.Place.SameZone(location.Location{Region: z.region, Zone: z.name}) {
			clientIndex, s.clientZone = i, z.key()
		}
		zoneCallers := n.Callers[z.name]
		if n.Callers == nil && z.hasEndpoints {
			zoneCallers = 1
		}
		add(z.key(), float64(z.capacity), zoneCallers)
		for _, l := range z.localities {
			s.localityZones[NameOf(l)] = localityZone{z.key(), usableWeight(l)}
		}
	}
	for _, name := range n.missingZones(zones) {
		add(LocalityName("", name, ""), 0, n.Callers[name])
	}
	return weightedtarget.Shares(capacity, callers, clientIndex)[:len(zones)], s
}

// missingZones returns the names of the zones that have callers but are not in zones.
func (n Near) missingZones(zones []zone) []string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(n.Callers)) {
		if !slices.ContainsFunc(zones, func(z zone) bool { return z.name == name }) {
			names = append(names, name)
		}
	}
	return names
}

// MissingZones returns the names of the zones that have configured callers but no locality in the
// answer.
func (n Near) MissingZones(a *Answer) []string {
	var zones []zone
	for i := range a.Priorities {
		zones = append(zones, zonesOf(&a.Priorities[i])...)
	}
	return n.missingZones(zones)
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
		z.hasEndpoints = z.hasEndpoints || len(l.Endpoints) > 0
	}
	return zones
}
