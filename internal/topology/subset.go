package topology

import (
	"github.com/cespare/xxhash/v2"
	"google.golang.org/grpc/resolver"

	identity "github.com/understudy-lb/understudy/internal/core/weightedroundrobin"
	"github.com/understudy-lb/understudy/internal/hierarchy"
)

// ofLocality identifies a locality of a tree: two elements of a path.
type ofLocality [2]string

// subset returns the endpoints that this client uses, in their order: of each locality at most as
// many as the settings say (gRFC A68). The weights of localities are those of all endpoints, so
// the shares between them stay. The weights of endpoints do not choose: those that were likelier
// to be chosen, and then had more of the picks, would have load in proportion to their square.
func (s Settings) subset(endpoints []resolver.Endpoint) []resolver.Endpoint {
	if s.Subset <= 0 || len(endpoints) <= s.Subset {
		return endpoints
	}
	type locality struct {
		at    []int
		items []subsetItem[identity.Key]
	}
	localities := make(map[ofLocality]*locality)
	seed, digest := s.subsetSeed(), xxhash.New()
	for i, e := range endpoints {
		if len(e.Addresses) == 0 {
			continue // it has no connection, and does not count
		}
		var of ofLocality
		copy(of[:], hierarchy.Path(e))
		l := localities[of]
		if l == nil {
			l = &locality{}
			localities[of] = l
		}
		digest.ResetWithSeed(seed)
		_, _ = digest.WriteString(e.Addresses[0].Addr)
		l.at = append(l.at, i)
		l.items = append(l.items, subsetItem[identity.Key]{Rank: digest.Sum64(), Key: keyOf(e)})
	}
	keep := make([]bool, len(endpoints))
	for _, l := range localities {
		for j, chosen := range chooseSubset(l.items, s.Subset) {
			keep[l.at[j]] = chosen
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

// subsetSeed returns the seed that is given, or else the channel's.
func (s Settings) subsetSeed() uint64 {
	if s.SubsetSeed > 0 {
		return uint64(s.SubsetSeed)
	}
	return s.ChannelSeed
}

// keyOf returns what tells an endpoint from others, as it does for the policy of a locality.
func keyOf(e resolver.Endpoint) identity.Key {
	addresses := make([]identity.Address, len(e.Addresses))
	for i, a := range e.Addresses {
		addresses[i] = identity.Address{Addr: a.Addr, ServerName: a.ServerName}
	}
	return identity.KeyOf(addresses)
}
