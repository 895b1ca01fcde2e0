package topology

import (
	"cmp"
	"maps"
	"slices"

	"github.com/cespare/xxhash/v2"
	"google.golang.org/grpc/resolver"
)

// subset limits the number of endpoints we connect to in each locality (gRFC A68). A locality's
// weight still covers all of its endpoints, so its share of the calls stays the same. We
// deliberately ignore the weights of endpoints when choosing. A heavy endpoint would otherwise be
// chosen by more clients, each of which would also pick it more often, so its load would grow with
// the square of its weight.
func (t Tree) subset(s Settings) Tree {
	if s.Subset <= 0 || len(t.Endpoints) <= s.Subset {
		return t
	}
	seed := cmp.Or(uint64(s.SubsetSeed), s.ChannelSeed) //nolint:gosec // can't be negative
	rest := t.Endpoints
	t.Endpoints, t.Priorities = nil, slices.Clone(t.Priorities)
	for i := range t.Priorities {
		p := &t.Priorities[i]
		p.localities = slices.Clone(p.localities)
		for j := range p.localities {
			l := &p.localities[j]
			before := len(t.Endpoints)
			chosen := chooseSubset(ranksOf(rest[:l.endpoints], seed), s.Subset)
			for _, e := range rest[:l.endpoints] {
				if chosen[e.Addresses[0].Addr] {
					t.Endpoints = append(t.Endpoints, e)
				}
			}
			rest = rest[l.endpoints:]
			l.endpoints = len(t.Endpoints) - before
		}
	}
	return t
}

// An endpoint's rank is a hash of its first address, seeded per client. Endpoints that share a
// first address count as one.
func ranksOf(endpoints []resolver.Endpoint, seed uint64) map[string]uint64 {
	ranks, digest := make(map[string]uint64, len(endpoints)), xxhash.New()
	for _, e := range endpoints {
		digest.ResetWithSeed(seed)
		_, _ = digest.WriteString(e.Addresses[0].Addr)
		ranks[e.Addresses[0].Addr] = digest.Sum64()
	}
	return ranks
}

// We choose the addresses with the lowest ranks (gRFC A68). An address always has the same rank, so
// it stays in the subset until it's removed or a new address with a lower rank pushes it out:
//
//	size 2: a:30 b:10 c:20  ->  b c
//	        b:10 c:20 d:15  ->  b d    a wasn't in use anyway; d replaces c
func chooseSubset(ranks map[string]uint64, size int) map[string]bool {
	order := slices.SortedFunc(maps.Keys(ranks), func(a, b string) int {
		return cmp.Or(cmp.Compare(ranks[a], ranks[b]), cmp.Compare(a, b))
	})
	chosen := make(map[string]bool, size)
	for _, address := range order[:min(size, len(order))] {
		chosen[address] = true
	}
	return chosen
}
