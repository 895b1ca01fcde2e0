package weightedroundrobin

import (
	"slices"

	"google.golang.org/grpc/experimental/balancer/weight"
	"google.golang.org/grpc/resolver"

	core "github.com/understudy-lb/understudy/internal/core/weightedroundrobin"
	"github.com/understudy-lb/understudy/internal/hierarchy"
	"github.com/understudy-lb/understudy/internal/stateattr"
)

// keyOf returns the key of an endpoint, or false if it has no addresses. It uses the addresses from
// the resolver, because behind a proxy gRPC replaces all of them by the proxy's.
func (p *policy) keyOf(endpoint resolver.Endpoint) (core.Key, bool) {
	p.addresses = p.addresses[:0]
	for _, a := range hierarchy.Addresses(endpoint) {
		p.addresses = append(p.addresses, core.Address{Addr: a.Addr, ServerName: a.ServerName})
	}
	if len(p.addresses) == 0 {
		return core.Key{}, false
	}
	return core.KeyOf(p.addresses), true
}

func weightOf(endpoint resolver.Endpoint) uint32 {
	return max(1, weight.FromEndpoint(endpoint).Weight)
}

// sameButWeight reports whether a and b are equal except for their weights.
func sameButWeight(a, b resolver.Endpoint) bool {
	return stateattr.Same(func() bool {
		if !slices.EqualFunc(a.Addresses, b.Addresses, resolver.Address.Equal) {
			return false
		}
		if a.Attributes == b.Attributes {
			return true
		}
		none := weight.EndpointInfo{}
		return weight.Set(a, none).Attributes.Equal(weight.Set(b, none).Attributes)
	})
}
