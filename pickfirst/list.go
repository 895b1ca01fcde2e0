package pickfirst

import (
	"math/rand/v2"
	"slices"

	"google.golang.org/grpc/experimental/balancer/weight"
	"google.golang.org/grpc/resolver"

	core "github.com/understudy-lb/understudy/internal/core/pickfirst"
)

// addressesOf returns the addresses of state in the order in which they are to be
// tried, each once: the endpoints, shuffled where asked for, one after the other
// (A61), and with the address families interleaved. The addresses of one endpoint
// are not shuffled. The state's own slices are not touched.
func addressesOf(state resolver.State, shuffle bool) []resolver.Address {
	var flat []resolver.Address
	for _, e := range inOrder(state.Endpoints, shuffle, endpointWeight) {
		flat = append(flat, e.Addresses...)
	}
	if len(flat) == 0 {
		flat = append(flat, inOrder(state.Addresses, shuffle, addressWeight)...)
	}
	return interleave(unique(flat))
}

func endpointWeight(e resolver.Endpoint) uint32 { return weight.FromEndpoint(e).Weight }

func addressWeight(resolver.Address) uint32 { return 1 }

func inOrder[T any](list []T, shuffle bool, weightOf func(T) uint32) []T {
	if !shuffle || len(list) < 2 {
		return list
	}
	weights := make([]uint32, len(list))
	for i, e := range list {
		weights[i] = weightOf(e)
	}
	shuffled := make([]T, len(list))
	for i, from := range core.Shuffle(weights, rand.Float64) {
		shuffled[i] = list[from]
	}
	return shuffled
}

// unique drops all but the first of equal addresses, in place.
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

// placesIn returns where each address of list is in old, and -1 for those that are
// not there. Addresses are equal if a connection to one is as good as one to the
// other: same address, server name and attributes.
func placesIn(old []entry, list []resolver.Address) []int {
	places := make([]int, len(list))
	find := finder(old, len(list))
	for i := range list {
		places[i] = find(list[i])
	}
	return places
}

// finder returns a search in old: a plain one where a map would cost more.
func finder(old []entry, searches int) func(resolver.Address) int {
	if len(old) <= 1 || searches == 1 {
		return func(a resolver.Address) int {
			return slices.IndexFunc(old, func(e entry) bool {
				return e.address.Addr == a.Addr && e.address.ServerName == a.ServerName &&
					e.address.Attributes.Equal(a.Attributes)
			})
		}
	}
	index := resolver.NewAddressMapV2[int]()
	for i := range old {
		index.Set(old[i].address, i)
	}
	return func(a resolver.Address) int {
		if i, ok := index.Get(a); ok {
			return i
		}
		return -1
	}
}
