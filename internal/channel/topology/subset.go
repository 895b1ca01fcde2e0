package topology

import (
	"cmp"
	"slices"

	"github.com/cespare/xxhash/v2"
	"google.golang.org/grpc/resolver"

	identity "github.com/understudy-lb/understudy/internal/core/weightedroundrobin"
)

// subset returns the tree with the endpoints to which this client connects, in their order: at most
// s.Subset endpoints of each locality (gRFC A68). The weight of a locality still includes all its
// endpoints, so its share of the calls does not change. The choice ignores the weights of endpoints.
// Otherwise, more clients would choose a heavy endpoint, and each of them would also pick it more
// often, so its load would grow with the square of its weight.
func (t Tree) subset(s Settings) Tree {
	if s.Subset <= 0 || len(t.Endpoints) <= s.Subset {
		return t
	}
	seed := cmp.Or(uint64(s.SubsetSeed), s.ChannelSeed) //nolint:gosec // not negative
	rest := t.Endpoints
	t.Endpoints, t.Priorities = nil, slices.Clone(t.Priorities)
	for i := range t.Priorities {
		p := &t.Priorities[i]
		p.localities = slices.Clone(p.localities)
		for j := range p.localities {
			l := &p.localities[j]
			before := len(t.Endpoints)
			for k, isChosen := range chooseSubset(itemsOf(rest[:l.endpoints], seed), s.Subset) {
				if isChosen {
					t.Endpoints = append(t.Endpoints, rest[k])
				}
			}
			rest = rest[l.endpoints:]
			l.endpoints = len(t.Endpoints) - before
		}
	}
	return t
}

func itemsOf(endpoints []resolver.Endpoint, seed uint64) []subsetItem[identity.Key] {
	items, digest := make([]subsetItem[identity.Key], len(endpoints)), xxhash.New()
	for i, e := range endpoints {
		addresses := make([]identity.Address, len(e.Addresses))
		for n, a := range e.Addresses {
			addresses[n] = identity.Address{Addr: a.Addr, ServerName: a.ServerName}
		}
		digest.ResetWithSeed(seed)
		_, _ = digest.WriteString(e.Addresses[0].Addr)
		items[i] = subsetItem[identity.Key]{Rank: digest.Sum64(), Key: identity.KeyOf(addresses)} // as the locality's policy identifies it
	}
	return items
}

// subsetItem is an endpoint for chooseSubset. Items with the same Key are duplicates of one
// endpoint. Rank is a hash of the endpoint's first address and the client's seed.
type subsetItem[K comparable] struct {
	Rank uint64
	Key  K
}

// chooseSubset reports which items are in the subset (gRFC A68). These are the items with the
// lowest ranks. Among items with equal ranks, earlier items precede later ones. Items with the same
// key count as one item. The rank of an item never changes, so an item leaves the subset only when
// it is removed, or when a new item with a lower rank replaces it.
//
//	size 2: a:30 b:10 c:20  ->  b c
//	        b:10 c:20 d:15  ->  b d    the removal of a has no effect; d replaces c
func chooseSubset[K comparable](items []subsetItem[K], size int) []bool {
	order := make([]int, len(items))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(items[a].Rank, items[b].Rank), cmp.Compare(a, b))
	})
	chosen, keys := make([]bool, len(items)), make(map[K]bool)
	for _, i := range order {
		if len(keys) < size {
			keys[items[i].Key] = true
		}
		chosen[i] = keys[items[i].Key]
	}
	return chosen
}
