package pickfirst

import (
	"cmp"
	"math"
	"net"
	"net/netip"
	"slices"
)

// Shuffle returns the indexes of the endpoints in a random order. Endpoints with a larger weight
// tend to come first (gRFC A113: endpoints are sorted by u^(1/w), descending). A weight of 0 counts
// as 1. random contains the u of each endpoint, uniformly distributed in [0, 1). The relative order
// of two endpoints does not depend on the other endpoints.
func Shuffle(weights []uint32, random []float64) []int {
	keys := make([]float64, len(weights))
	order := make([]int, len(weights))
	for i, w := range weights {
		// The key is log(u)/w, the logarithm of u^(1/w), so the order is the same. For large weights,
		// u^(1/w) is close to 1, where the logarithm is more precise.
		keys[i] = math.Log(random[i]) / float64(max(w, 1))
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(keys[b], keys[a]) })
	return order
}

type Family uint8

// Other covers all strings that are not an IP address and a port.
const (
	Other Family = iota
	IPv4
	IPv6
	families
)

// FamilyOf returns the family of an address such as "192.0.2.1:443" or "[2001:db8::1]:443". An
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

// Interleave returns the indexes of addresses in the order in which to try them (A61, after RFC
// 8305 section 4). list contains the family of each address. The first address of each family comes
// first, in the order in which the families appear in list, then the second address of each family,
// and so on.
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
