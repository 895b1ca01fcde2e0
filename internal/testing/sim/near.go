package sim

import (
	"math/rand/v2"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// nearby has the options of the channel that prefer near endpoints, and the location of its client.
// Its methods implement docs/near.md independently of the library.
type nearby struct {
	prefer             string // "zone", "hints", or "" for none
	zone, region, node string
}

func newNearby(r *rand.Rand) nearby {
	if r.IntN(3) > 0 {
		return nearby{}
	}
	n := nearby{
		prefer: []string{"zone", "hints"}[r.IntN(2)],
		zone:   string(rune('a' + r.IntN(6))),
		node:   nodeOf(strconv.Itoa(r.IntN(3))),
	}
	switch r.IntN(6) {
	case 0:
	case 1:
		n.region = regionOf(string(rune('a' + r.IntN(6)))) // often not the region of the zone
	default:
		n.region = regionOf(n.zone)
	}
	return n
}

func (n nearby) addParams(params url.Values) {
	if n.prefer == "" {
		return
	}
	for name, value := range map[string]string{"prefer": n.prefer, "zone": n.zone, "region": n.region, "node": n.node} {
		if value != "" {
			params.Set(name, value)
		}
	}
}

func regionOf(zone string) string {
	if zone != "" && strings.Contains("abc", zone) {
		return "sim"
	}
	return "far"
}

func splitZone(zone string) (region, name string) {
	// The region is "" if it is unknown.
	if region, name, found := strings.Cut(zone, "/"); found {
		return region, name
	}
	return regionOf(zone), zone
}

func digit(address string) int {
	host, _, _ := strings.Cut(address, ":")
	return int(host[len(host)-1] - '0')
}

func nodeOf(address string) string { return "n" + strconv.Itoa(digit(address)%3) }

func forNodes(address string) []string {
	if digit(address) > 6 {
		return nil
	}
	return []string{"n" + strconv.Itoa(digit(address)%4)}
}

func forZones(address string) []string {
	if digit(address) > 8 {
		return nil
	}
	return []string{string(rune('a' + digit(address)%5)), string(rune('a' + (digit(address)+1)%5))}
}

func (n nearby) groups(truth EndpointSet) (groups EndpointSet, sourceIndexes []int) {
	for i, tier := range truth {
		split := EndpointSet{tier}
		if n.prefer != "" && slices.ContainsFunc(tier, func(l Locality) bool { return l.Zone != "" }) {
			split = n.split(tier)
		}
		for _, g := range split {
			groups, sourceIndexes = append(groups, g), append(sourceIndexes, i)
		}
	}
	return groups, sourceIndexes
}

const rankCount = 4

func (n nearby) split(tier Tier) (groups EndpointSet) {
	// If a group has no usable endpoints, split merges it with the next group.
	rankOf := n.ranking(tier)
	ranks := make([]bool, rankCount)
	for rank := range rankCount {
		ranks[rank] = true
		group := tier.withRanks(rankOf, ranks)
		if len(group.Serving()) == 0 && rank < rankCount-1 {
			continue
		}
		if len(group) > 0 {
			groups = append(groups, group)
		}
		clear(ranks)
	}
	if len(groups) < 2 {
		return EndpointSet{tier}
	}
	return groups
}

func (n nearby) isOwnZone(zone string) bool {
	// The zone may have the form "region/zone".
	region, name := splitZone(zone)
	return name == n.zone && (n.region == "" || region == "" || n.region == region)
}

func (n nearby) ranking(tier Tier) func(zone, address string) int {
	// A lower rank is nearer to the client.
	if n.prefer != "hints" {
		return func(zone, _ string) int {
			region, _ := splitZone(zone)
			switch {
			case n.isOwnZone(zone):
				return 1
			case region != "" && n.region == region:
				return 2
			}
			return 3
		}
	}
	serving := tier.Serving()
	for _, hint := range []struct {
		values func(string) []string
		own    string
	}{{forNodes, n.node}, {forZones, n.zone}} {
		matches := func(address string) bool { return slices.Contains(hint.values(address), hint.own) }
		hasNone := func(address string) bool { return len(hint.values(address)) == 0 }
		if slices.ContainsFunc(serving, matches) && !slices.ContainsFunc(serving, hasNone) {
			return func(_, address string) int {
				if address != "" && matches(address) {
					return 0
				}
				return 3
			}
		}
	}
	return func(string, string) int { return 3 }
}

// withRanks reduces the weight of a locality in proportion to the usable endpoints that it leaves
// out.
func (t Tier) withRanks(rankOf func(zone, address string) int, ranks []bool) (localities Tier) {
	const scale = 1 << 20 // keeps the rounding errors of the reduced weights small
	all := func(string) bool { return true }
	for _, l := range t {
		kept := l
		kept.Endpoints = nil
		for _, e := range l.Endpoints {
			if ranks[rankOf(l.Zone, e.Address)] {
				kept.Endpoints = append(kept.Endpoints, e)
			}
		}
		kept.Weight *= scale
		if whole := l.upWeight(all); whole > 0 {
			kept.Weight = uint32(float64(kept.Weight) * kept.upWeight(all) / whole)
		}
		if len(kept.Endpoints) > 0 || len(l.Endpoints) == 0 && ranks[rankOf(l.Zone, "")] {
			localities = append(localities, kept)
		}
	}
	return localities
}

func (w *World) preferLine(m []string) string {
	switch {
	case m[1] != w.settings.near.prefer:
		return "the channel has prefer=" + w.settings.near.prefer
	case m[2] != "" && m[2] != "hints" && sourceOf[*records](w) == nil && (m[2] != "region" || sourceOf[*kube](w) == nil):
		return "the source has zones and regions"
	}
	return ""
}
