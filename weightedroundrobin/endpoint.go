package weightedroundrobin

import (
	"slices"

	"google.golang.org/grpc/attributes"
	"google.golang.org/grpc/experimental/balancer/weight"
	"google.golang.org/grpc/resolver"

	core "github.com/understudy-lb/understudy/internal/core/weightedroundrobin"
	"github.com/understudy-lb/understudy/internal/hierarchy"
	"github.com/understudy-lb/understudy/internal/inorder"
	"github.com/understudy-lb/understudy/internal/stateattr"
)

// keyOf returns the key of an endpoint, or false if it has no addresses. It uses the addresses from
// the resolver, because gRPC replaces an endpoint's addresses if there is a proxy.
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

func addressOf(endpoint resolver.Endpoint) (a core.Address) {
	if len(endpoint.Addresses) == 0 {
		return a
	}
	return core.Address{Addr: endpoint.Addresses[0].Addr, ServerName: endpoint.Addresses[0].ServerName}
}

func weightOf(endpoint resolver.Endpoint) uint32 {
	return max(1, weight.FromEndpoint(endpoint).Weight)
}

func sameButWeight(a, b resolver.Endpoint) bool {
	return stateattr.Same(func() bool {
		return slices.EqualFunc(a.Addresses, b.Addresses, resolver.Address.Equal) && sameAttributes(a.Attributes, b.Attributes)
	})
}

// sameAttributes reports whether a and b are equal except for their weights. It panics if an
// attribute cannot be compared.
func sameAttributes(a, b *attributes.Attributes) bool {
	if a == b {
		return true
	}
	none := weight.EndpointInfo{}
	return weight.Set(resolver.Endpoint{Attributes: a}, none).Attributes.Equal(weight.Set(resolver.Endpoint{Attributes: b}, none).Attributes)
}

// search finds the children of unchanged endpoints without computing keys, which is faster. It
// finds only endpoints with one address whose slice is the same as in the last update. Their
// weights may differ.
type search struct {
	last []*child
	inorder.Search
	same map[[2]*attributes.Attributes]bool // cache of sameAttributes, because many endpoints share their attributes
}

func (s *search) find(e resolver.Endpoint) *child {
	if len(e.Addresses) != 1 {
		return nil
	}
	i := s.Find(len(s.last), func(i int) bool {
		c := &s.last[i].Attached
		return len(c.endpoint.Addresses) == 1 && &c.endpoint.Addresses[0] == &e.Addresses[0] && c.address == addressOf(e) && s.sameAttributes(c.endpoint.Attributes, e.Attributes)
	})
	if i < 0 {
		return nil
	}
	return s.last[i]
}

func (s *search) sameAttributes(a, b *attributes.Attributes) bool {
	if a == b {
		return true
	}
	of := [2]*attributes.Attributes{a, b}
	same, known := s.same[of]
	if !known {
		same = stateattr.Same(func() bool { return sameAttributes(a, b) })
		if s.same == nil {
			s.same = make(map[[2]*attributes.Attributes]bool)
		}
		s.same[of] = same
	}
	return same
}
