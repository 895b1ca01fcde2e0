package weightedroundrobin

import (
	"slices"

	"google.golang.org/grpc/attributes"
	"google.golang.org/grpc/experimental/balancer/weight"
	"google.golang.org/grpc/resolver"

	core "github.com/understudy-lb/understudy/internal/core/weightedroundrobin"
	"github.com/understudy-lb/understudy/internal/hierarchy"
)

// keyOf returns the key of an endpoint, or false without addresses. It uses the resolver's
// addresses, because behind a proxy all endpoints have the proxy's.
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

// sameButWeight reports whether a and b differ at most in their weights.
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

// incomparable must be deferred. It sets *same to false if Equal has panicked because of an
// attribute value that cannot be compared.
func incomparable(same *bool) {
	if recover() != nil {
		*same = false
	}
}
