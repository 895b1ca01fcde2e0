package pickfirst

import (
	"hash/maphash"
	"slices"

	"google.golang.org/grpc/experimental/balancer/weight"
	"google.golang.org/grpc/resolver"

	core "github.com/understudy-lb/understudy/internal/core/pickfirst"
)

// addressesOf goes endpoint by endpoint (A61), in random order if seed is set. Then it interleaves
// the address families and removes duplicates. state isn't modified.
func addressesOf(state resolver.State, seed *maphash.Seed) []resolver.Address {
	var flat []resolver.Address
	for _, e := range inOrder(state.Endpoints, seed, ofEndpoint) {
		flat = append(flat, e.Addresses...)
	}
	if len(flat) == 0 {
		flat = append(flat, inOrder(state.Addresses, seed, ofAddress)...)
	}
	return interleave(unique(flat))
}

func ofEndpoint(e resolver.Endpoint) (uint32, []resolver.Address) {
	return weight.FromEndpoint(e).Weight, e.Addresses
}

func ofAddress(a resolver.Address) (uint32, []resolver.Address) { return 1, []resolver.Address{a} }

// inOrder shuffles the list if seed is set. The random number of an endpoint only depends on the
// seed and its addresses, so two endpoints keep their relative order when the list changes.
func inOrder[T any](list []T, seed *maphash.Seed, of func(T) (weight uint32, addresses []resolver.Address)) []T {
	if seed == nil {
		return list
	}
	weights, random := make([]uint32, len(list)), make([]float64, len(list))
	for i, e := range list {
		w, addresses := of(e)
		weights[i], random[i] = w, number(*seed, addresses)
	}
	shuffled := make([]T, len(list))
	for i, from := range core.Shuffle(weights, random) {
		shuffled[i] = list[from]
	}
	return shuffled
}

// number returns a number in [0, 1) that doesn't depend on the order of the addresses. With random
// seeds, it's uniformly distributed and independent for each endpoint.
func number(seed maphash.Seed, addresses []resolver.Address) float64 {
	var sum uint64
	for _, a := range addresses {
		sum += maphash.Comparable(seed, struct{ addr, serverName string }{a.Addr, a.ServerName})
	}
	return float64(sum>>11) / (1 << 53)
}

func unique(list []resolver.Address) []resolver.Address {
	if len(list) < 2 {
		return list
	}
	seen := resolver.NewAddressMapV2[struct{}]()
	return slices.DeleteFunc(list, func(a resolver.Address) bool {
		_, twice := seen.Get(a)
		seen.Set(a, struct{}{})
		return twice
	})
}

func interleave(list []resolver.Address) []resolver.Address {
	if len(list) < 3 {
		return list
	}
	families := make([]core.Family, len(list))
	for i, a := range list {
		families[i] = core.FamilyOf(a.Addr)
	}
	interleaved := make([]resolver.Address, len(list))
	for i, from := range core.Interleave(families) {
		interleaved[i] = list[from]
	}
	return interleaved
}

// placesIn returns the index in old for each address of the list, or -1 if it's new. Two addresses
// are the same if they have the same Addr, server name and attributes.
func placesIn(old []entry, list []resolver.Address) []int {
	places := make([]int, len(list))
	if len(old) <= 1 { // most policies; a map would cost more than the comparison
		for i, a := range list {
			places[i] = slices.IndexFunc(old, func(e entry) bool {
				known := &e.address[0]
				return known.Addr == a.Addr && known.ServerName == a.ServerName && known.Attributes.Equal(a.Attributes)
			})
		}
		return places
	}
	index := resolver.NewAddressMapV2[int]()
	for i := range old {
		index.Set(old[i].address[0], i+1)
	}
	for i, a := range list {
		place, _ := index.Get(a)
		places[i] = place - 1
	}
	return places
}
