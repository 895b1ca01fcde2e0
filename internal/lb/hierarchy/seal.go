package hierarchy

import (
	"slices"

	"google.golang.org/grpc/resolver"

	identity "github.com/understudy-lb/understudy/internal/core/weightedroundrobin"
)

type sealKey struct{}

// sealed is stored as a pointer, because attributes compare values with ==.
type sealed struct {
	endpoints []resolver.Endpoint
}

// Seal is like hierarchy.Seal without the copy, so don't modify the endpoints afterwards.
func Seal(state resolver.State) resolver.State {
	state.Attributes = state.Attributes.WithValue(sealKey{}, &sealed{endpoints: state.Endpoints})
	return state
}

// Unseal restores the endpoints of a sealed state. If a policy divides its endpoints among
// children, it must call this first, on each state that it gets.
//
// Endpoints are matched by index. Their attributes and server names are only restored if no
// endpoint has a path and the number of endpoints hasn't changed.
func Unseal(state resolver.State) resolver.State {
	s, ok := state.Attributes.Value(sealKey{}).(*sealed)
	if !ok || s == nil {
		return state
	}
	state.Attributes = state.Attributes.WithValue(sealKey{}, (*sealed)(nil))
	if len(state.Endpoints) != len(s.endpoints) || slices.ContainsFunc(state.Endpoints, func(e resolver.Endpoint) bool { return pathOf(e) != nil }) {
		return state
	}
	state.Endpoints = slices.Clone(state.Endpoints)
	for i, original := range s.endpoints {
		endpoint := &state.Endpoints[i]
		endpoint.Attributes = original.Attributes.WithValue(originKey{}, origin(original.Addresses))
		endpoint.Addresses = restoreServerNames(endpoint.Addresses, original.Addresses)
	}
	return state
}

// restoreServerNames restores the server names of addresses that gRPC has replaced. If there's a
// proxy, gRPC replaces each address that needs it by all addresses of the proxy. We give those the
// server name of the address they stand in for:
//
//	originals: 192.0.2.1 (a)          10.0.0.1 (b)    10.0.0.1 is in NO_PROXY
//	addresses: proxy1 proxy2          10.0.0.1 (b)    the proxy has two addresses
//	result:    proxy1 (a) proxy2 (a)  10.0.0.1 (b)
//
// If the numbers don't add up, we return addresses unchanged.
func restoreServerNames(addresses, originals []resolver.Address) []resolver.Address {
	direct := make(map[addressID]bool, len(addresses))
	for _, address := range addresses {
		direct[idOf(address)] = true
	}
	proxied, remaining := 0, len(addresses)
	for _, original := range originals {
		if direct[idOf(original)] {
			remaining--
		} else {
			proxied++
		}
	}
	if proxied == 0 || remaining < 0 || remaining%proxied != 0 {
		return addresses
	}
	restored := make([]resolver.Address, 0, len(addresses))
	for _, original := range originals {
		n := remaining / proxied
		if direct[idOf(original)] {
			n = 1
		}
		for range n {
			address := addresses[len(restored)]
			address.ServerName = original.ServerName
			restored = append(restored, address)
		}
	}
	return restored
}

type addressID struct{ addr, serverName string }

func idOf(address resolver.Address) addressID {
	return addressID{address.Addr, address.ServerName}
}

type originKey struct{}

type origin []resolver.Address

func (o origin) Equal(other any) bool {
	p, ok := other.(origin)
	return ok && slices.EqualFunc(o, p, resolver.Address.Equal)
}

// Addresses returns the addresses of an endpoint as the resolver sent them. If there's a proxy, the
// field Addresses of the endpoint has the proxy's addresses instead. So policies identify an
// endpoint by the result of this function, but connect to what's in the field. Don't modify the
// result.
func Addresses(endpoint resolver.Endpoint) []resolver.Address {
	if o, ok := endpoint.Attributes.Value(originKey{}).(origin); ok {
		return o
	}
	return endpoint.Addresses
}

// KeyOf returns the key of an endpoint, or false if it has no addresses. Endpoints behind the same
// proxy still have different keys.
func KeyOf(endpoint resolver.Endpoint) (identity.Key, bool) {
	var few [4]identity.Address
	addresses := few[:0]
	for _, a := range Addresses(endpoint) {
		addresses = append(addresses, identity.Address{Addr: a.Addr, ServerName: a.ServerName})
	}
	if len(addresses) == 0 {
		return "", false
	}
	return identity.KeyOf(addresses), true
}
