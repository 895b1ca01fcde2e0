package weightedroundrobin

import (
	"slices"

	"google.golang.org/grpc/attributes"
	"google.golang.org/grpc/experimental/balancer/weight"
	"google.golang.org/grpc/resolver"

	core "github.com/understudy-lb/understudy/internal/core/weightedroundrobin"
	"github.com/understudy-lb/understudy/internal/hierarchy"
)

// keyOf returns the key of endpoint, or false if it has no address. It takes the
// addresses that the resolver gave: behind a proxy, all endpoints connect to the same
// ones.
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

// weightOf returns the weight of endpoint, 1 where it has none.
func weightOf(endpoint resolver.Endpoint) uint32 {
	return max(1, weight.FromEndpoint(endpoint).Weight)
}

// sameButWeight returns whether a and b are known to differ in nothing but their
// weights, so that the endpoint's child has nothing to learn from the new one.
func sameButWeight(a, b resolver.Endpoint) bool {
	if !sameAddresses(a.Addresses, b.Addresses) {
		return false
	}
	if a.Attributes == b.Attributes {
		return true
	}
	none := weight.EndpointInfo{}
	return sameAttributes(weight.Set(a, none).Attributes, weight.Set(b, none).Attributes)
}

func sameAddresses(a, b []resolver.Address) (same bool) {
	defer incomparable(&same)
	return slices.EqualFunc(a, b, resolver.Address.Equal)
}

func sameAttributes(a, b *attributes.Attributes) (same bool) {
	defer incomparable(&same)
	return a.Equal(b)
}

// incomparable is to be deferred. It makes attributes that cannot be compared
// different: Equal panics on a slice, for example, which a resolver may have put there.
func incomparable(same *bool) {
	if recover() != nil {
		*same = false
	}
}
