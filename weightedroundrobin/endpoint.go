package weightedroundrobin

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/grpc/attributes"
	"google.golang.org/grpc/experimental/balancer/weight"
	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/hierarchy"
)

// key identifies an endpoint from update to update: it is the set of its
// addresses, each an address and a server name, in whatever order they come.
type key struct {
	addr, serverName string // the smallest address
	others           string // the others, sorted; "" where there is only one
}

// keyOf returns the key of endpoint; false if it has no address. Behind a proxy the
// addresses are those that the resolver gave, because what is connected to is the
// same for all endpoints.
func keyOf(endpoint resolver.Endpoint) (key, bool) {
	addresses := hierarchy.Addresses(endpoint)
	switch len(addresses) {
	case 0:
		return key{}, false
	case 1:
		return key{addr: addresses[0].Addr, serverName: addresses[0].ServerName}, true
	}
	sorted := make([]key, len(addresses))
	for i, a := range addresses {
		sorted[i] = key{addr: a.Addr, serverName: a.ServerName}
	}
	slices.SortFunc(sorted, func(a, b key) int {
		return cmp.Or(cmp.Compare(a.addr, b.addr), cmp.Compare(a.serverName, b.serverName))
	})
	sorted = slices.Compact(sorted)
	var others strings.Builder
	for _, k := range sorted[1:] {
		others.WriteString(strconv.Quote(k.addr))
		others.WriteString(strconv.Quote(k.serverName))
	}
	sorted[0].others = others.String()
	return sorted[0], true
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

// incomparable, deferred, makes attributes that cannot be compared different: Equal
// panics on a slice, say, which a resolver's author may well have put there.
func incomparable(same *bool) {
	if recover() != nil {
		*same = false
	}
}
