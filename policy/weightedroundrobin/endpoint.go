package weightedroundrobin

import (
	"slices"

	"google.golang.org/grpc/attributes"
	"google.golang.org/grpc/experimental/balancer/weight"
	"google.golang.org/grpc/resolver"

	core "github.com/understudy-lb/understudy/internal/core/weightedroundrobin"
	"github.com/understudy-lb/understudy/internal/lb/inorder"
	"github.com/understudy-lb/understudy/internal/lb/stateattr"
)

func weightOf(endpoint resolver.Endpoint) uint32 {
	return max(1, weight.FromEndpoint(endpoint).Weight)
}

func equalExceptWeight(a, b resolver.Endpoint) bool {
	return stateattr.Same(func() bool {
		return slices.EqualFunc(a.Addresses, b.Addresses, resolver.Address.Equal) && equalAttributes(a.Attributes, b.Attributes)
	})
}

// equalAttributes compares everything but the weights. It panics if an attribute isn't comparable.
func equalAttributes(a, b *attributes.Attributes) bool {
	if a == b {
		return true
	}
	noWeight := weight.EndpointInfo{}
	return weight.Set(resolver.Endpoint{Attributes: a}, noWeight).Attributes.Equal(weight.Set(resolver.Endpoint{Attributes: b}, noWeight).Attributes)
}

// search is a fast way to find the children of unchanged endpoints, because it doesn't need to
// compute keys. It only works for endpoints with a single address that's in the same slice as in
// the last update, though the weight may differ. Resolvers may change their list in place, so we
// check the key as well.
type search struct {
	previous []*child
	inorder.Search
	sameCache map[[2]*attributes.Attributes]bool // results of equalAttributes, because many endpoints share their attributes
}

func (s *search) find(e resolver.Endpoint) *child {
	if len(e.Addresses) != 1 {
		return nil
	}
	a := &e.Addresses[0]
	i := s.Find(len(s.previous), func(i int) bool {
		c := s.previous[i]
		known := &c.Attached.endpoint
		return len(known.Addresses) == 1 && &known.Addresses[0] == a && c.Key().Is(core.Address{Addr: a.Addr, ServerName: a.ServerName}) && s.sameAttributes(known.Attributes, e.Attributes)
	})
	if i < 0 {
		return nil
	}
	return s.previous[i]
}

func (s *search) sameAttributes(a, b *attributes.Attributes) bool {
	if a == b {
		return true
	}
	attributePair := [2]*attributes.Attributes{a, b}
	same, known := s.sameCache[attributePair]
	if !known {
		same = stateattr.Same(func() bool { return equalAttributes(a, b) })
		if s.sameCache == nil {
			s.sameCache = make(map[[2]*attributes.Attributes]bool)
		}
		s.sameCache[attributePair] = same
	}
	return same
}
