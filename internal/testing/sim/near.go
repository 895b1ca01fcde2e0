package sim

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// nearby has the channel's preference for near endpoints, and the location of its client. Its
// methods implement docs/near.md independently of the library.
type nearby struct {
	prefer             string // "zone", "node", "hints", "balance", or "" for none
	zone, region, node string
	least              int            // zoneMinEndpoints; 0 if it is not set
	callers            map[string]int // zoneCallers; nil if it is not set
	listed             bool           // zones without endpoints have callers
}

func newNearby(r *rand.Rand) nearby {
	if r.IntN(3) > 0 {
		return nearby{}
	}
	n := nearby{
		prefer: []string{"zone", "node", "hints", "balance"}[r.IntN(4)],
		zone:   string(rune('a' + r.IntN(6))),
		node:   nodeOf(strconv.Itoa(r.IntN(3))),
		least:  []int{0, 0, 1, 2, 3}[r.IntN(5)],
	}
	switch r.IntN(6) {
	case 0:
	case 1:
		n.region = regionOf(string(rune('a' + r.IntN(6)))) // the region may have no such zone
	default:
		n.region = regionOf(n.zone)
	}
	return n
}

func (n nearby) set(given url.Values) {
	if n.prefer == "" {
		return
	}
	for name, value := range map[string]string{"prefer": n.prefer, "zone": n.zone, "region": n.region, "node": n.node} {
		if value != "" {
			given.Set(name, value)
		}
	}
	if n.callers != nil {
		var list []string
		for _, zone := range slices.Sorted(maps.Keys(n.callers)) {
			list = append(list, fmt.Sprint(zone, ":", n.callers[zone]))
		}
		given.Set("zoneCallers", strings.Join(list, ","))
	}
	if n.least > 0 {
		given.Set("zoneMinEndpoints", strconv.Itoa(n.least))
	}
}

// regionOf returns one of two regions for a zone.
func regionOf(zone string) string {
	if zone != "" && strings.Contains("abc", zone) {
		return "sim"
	}
	return "far"
}

// placeOf splits "region/zone". The region is "" if it is unknown.
func placeOf(zone string) (region, name string) {
	if region, name, found := strings.Cut(zone, "/"); found {
		return region, name
	}
	return regionOf(zone), zone
}

func digit(address string) int {
	host, _, _ := strings.Cut(address, ":")
	return int(host[len(host)-1] - '0')
}

// nodeOf returns the node of an endpoint. forNodes and forZones return its hints.
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

func (n nearby) groups(truth Truth) (groups Truth, of []int) {
	for i, tier := range truth {
		split := Truth{tier}
		if n.prefer == "balance" {
			split = n.balance(tier)
		} else if n.prefer != "" && slices.ContainsFunc(tier, func(l Locality) bool { return l.Zone != "" }) {
			split = n.split(tier)
		}
		for _, g := range split {
			groups, of = append(groups, g), append(of, i)
		}
	}
	return groups, of
}

const ranks = 4

// split returns the near groups of a priority. It joins a group with too few usable endpoints with
// the next one.
func (n nearby) split(tier Tier) (groups Truth) {
	rank := n.ranking(tier)
	in := make([]bool, ranks)
	for at := range ranks {
		in[at] = true
		group := tier.part(rank, in)
		if len(group.Serving()) < max(n.least, 1) && at < ranks-1 {
			continue
		}
		if len(group) > 0 {
			groups = append(groups, group)
		}
		clear(in)
	}
	if len(groups) < 2 {
		return Truth{tier}
	}
	return groups
}

// ranking returns a function that returns the rank of an endpoint by its distance: 0 is the
// nearest.
func (n nearby) ranking(tier Tier) func(zone, address string) int {
	if n.prefer != "hints" {
		return func(zone, address string) int {
			region, _ := placeOf(zone)
			switch {
			case n.prefer == "node" && address != "" && nodeOf(address) == n.node:
				return 0
			case n.own(zone):
				return 1
			case region != "" && n.region == region:
				return 2
			}
			return 3
		}
	}
	serving := tier.Serving()
	for _, hint := range []struct {
		of   func(string) []string
		ours string
	}{{forNodes, n.node}, {forZones, n.zone}} {
		ours := func(address string) bool { return slices.Contains(hint.of(address), hint.ours) }
		without := func(address string) bool { return len(hint.of(address)) == 0 }
		if slices.ContainsFunc(serving, ours) && !slices.ContainsFunc(serving, without) {
			return func(_, address string) int {
				if address != "" && ours(address) {
					return 0
				}
				return 3
			}
		}
	}
	return func(string, string) int { return 3 }
}

// part returns the localities of a priority with the endpoints of the given ranks. It divides the
// weight of a locality in proportion to the usable endpoints.
func (t Tier) part(rank func(zone, address string) int, in []bool) (part Tier) {
	const finer = 1 << 20 // more precise than the weights of localities
	all := func(string) bool { return true }
	for _, l := range t {
		some := l
		some.Endpoints = nil
		for _, e := range l.Endpoints {
			if in[rank(l.Zone, e.Address)] {
				some.Endpoints = append(some.Endpoints, e)
			}
		}
		some.Weight *= finer
		if whole := l.load(all); whole > 0 {
			some.Weight = uint32(float64(some.Weight) * some.load(all) / whole)
		}
		if len(some.Endpoints) > 0 || len(l.Endpoints) == 0 && in[rank(l.Zone, "")] {
			part = append(part, some)
		}
	}
	return part
}

// placelessLine checks the log line which says that prefer has no effect.
func (w *World) placelessLine(m []string) string {
	switch {
	case m[1] != w.settings.near.prefer:
		return "the channel has prefer=" + w.settings.near.prefer
	case m[2] != "" && m[2] != "hints" && part[*records](w) == nil && (m[2] != "region" || part[*kube](w) == nil):
		return "the source has zones and regions"
	}
	return ""
}
