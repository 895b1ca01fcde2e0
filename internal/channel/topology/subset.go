package topology

import (
	"github.com/cespare/xxhash/v2"
	"google.golang.org/grpc/resolver"

	identity "github.com/understudy-lb/understudy/internal/core/weightedroundrobin"
	"github.com/understudy-lb/understudy/internal/lb/hierarchy"
)

// localityPath identifies a locality by the path of its endpoints.
type localityPath [2]string

// subset returns the endpoints to which this client connects, in their order: at most s.Subset
// endpoints of each locality (gRFC A68). The weight of a locality still includes all its endpoints,
// so its share of the calls does not change. The choice ignores the weights of endpoints.
// Otherwise, more clients would choose a heavy endpoint, and each of them would also pick it more
// often, so its load would grow with the square of its weight.
func (s Settings) subset(endpoints []resolver.Endpoint) []resolver.Endpoint {
	if s.Subset <= 0 || len(endpoints) <= s.Subset {
		return endpoints
	}
	type locality struct {
		indexes []int
		items   []subsetItem[identity.Key]
	}
	localities := make(map[localityPath]*locality)
	seed, digest := s.subsetSeed(), xxhash.New()
	for i, e := range endpoints {
		if len(e.Addresses) == 0 {
			continue
		}
		var key localityPath
		copy(key[:], hierarchy.Path(e))
		l := localities[key]
		if l == nil {
			l = &locality{}
			localities[key] = l
		}
		digest.ResetWithSeed(seed)
		_, _ = digest.WriteString(e.Addresses[0].Addr)
		l.indexes = append(l.indexes, i)
		l.items = append(l.items, subsetItem[identity.Key]{Rank: digest.Sum64(), Key: keyOf(e)})
	}
	keep := make([]bool, len(endpoints))
	for _, l := range localities {
		for j, chosen := range chooseSubset(l.items, s.Subset) {
			keep[l.indexes[j]] = chosen
		}
	}
	var chosen []resolver.Endpoint
	for i, e := range endpoints {
		if keep[i] {
			chosen = append(chosen, e)
		}
	}
	return chosen
}

func (s Settings) subsetSeed() uint64 {
	if s.SubsetSeed > 0 {
		return uint64(s.SubsetSeed)
	}
	return s.ChannelSeed
}

// keyOf returns the key by which the locality's policy identifies an endpoint.
func keyOf(e resolver.Endpoint) identity.Key {
	addresses := make([]identity.Address, len(e.Addresses))
	for i, a := range e.Addresses {
		addresses[i] = identity.Address{Addr: a.Addr, ServerName: a.ServerName}
	}
	return identity.KeyOf(addresses)
}
