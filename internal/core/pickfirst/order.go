package pickfirst

import (
	"cmp"
	"math"
	"net"
	"net/netip"
	"slices"
)

// Shuffle returns the endpoints' indexes in random order, in which heavier endpoints tend to come
// first (gRFC A113: sorted by u^(1/w), descending). A weight of 0 counts as 1. random has the u of
// each endpoint, which must be uniformly distributed in [0, 1). Adding or removing an endpoint
// doesn't change the relative order of the rest.
func Shuffle(weights []uint32, random []float64) []int {
	keys := make([]float64, len(weights))
	order := make([]int, len(weights))
	for i, w := range weights {
		// We sort by log(u)/w instead of u^(1/w), which gives the same order. With large weights,
		// u^(1/w) gets so close to 1 that we'd lose precision.
		keys[i] = math.Log(random[i]) / float64(max(w, 1))
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(keys[b], keys[a]) })
	return order
}

type Family uint8

// Other is for any string that isn't an IP address with a port.
const (
	Other Family = iota
	IPv4
	IPv6
	families
)

// FamilyOf returns the family of an address like "192.0.2.1:443" or "[2001:db8::1]:443". An
// IPv4-mapped IPv6 address counts as IPv4.
func FamilyOf(address string) Family {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return Other
	}
	ip, err := netip.ParseAddr(host)
	switch {
	case err != nil:
		return Other
	case ip.Is4() || ip.Is4In6():
		return IPv4
	}
	return IPv6
}

// Interleave returns the order in which to try addresses, given the family of each (A61, after RFC
// 8305 section 4). It alternates between the families: first comes the first address of each
// family, then the second of each, and so on. The families themselves are in the order in which
// they appear in list.
func Interleave(list []Family) []int {
	var members [families][]int
	var familyOrder []Family
	for i, f := range list {
		if len(members[f]) == 0 {
			familyOrder = append(familyOrder, f)
		}
		members[f] = append(members[f], i)
	}
	order := make([]int, 0, len(list))
	for len(order) < len(list) {
		for _, f := range familyOrder {
			if len(members[f]) > 0 {
				order = append(order, members[f][0])
				members[f] = members[f][1:]
			}
		}
	}
	return order
}
