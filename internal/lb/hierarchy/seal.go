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

// Seal is like hierarchy.Seal, without a copy: the list of endpoints must not be modified later.
func Seal(state resolver.State) resolver.State {
	state.Attributes = state.Attributes.WithValue(sealKey{}, &sealed{endpoints: state.Endpoints})
	return state
}

// Unseal restores the endpoints of a sealed state. A policy that divides endpoints among children
// must first call it on each state that it receives.
//
// Unseal matches endpoints by index. It restores attributes and server names only if no endpoint
// has a path and the number of endpoints is unchanged.
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

// restoreServerNames copies the server name of each original address to the addresses by which gRPC
// has replaced it. If a proxy is configured, gRPC replaces each original address that needs the
// proxy by all addresses of the proxy:
//
//	originals: 192.0.2.1 (a)          10.0.0.1 (b)    10.0.0.1 is in NO_PROXY
//	addresses: proxy1 proxy2          10.0.0.1 (b)    the proxy has two addresses
//	result:    proxy1 (a) proxy2 (a)  10.0.0.1 (b)
//
// If the numbers of addresses do not match, restoreServerNames returns addresses unchanged.
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

// Addresses returns the addresses of an endpoint that the resolver sent. If a proxy is configured,
// the field Addresses of every endpoint contains the proxy's addresses instead. A policy therefore
// identifies an endpoint by the result of the function Addresses, but connects to the addresses in
// the field. The result must not be modified.
func Addresses(endpoint resolver.Endpoint) []resolver.Address {
	if o, ok := endpoint.Attributes.Value(originKey{}).(origin); ok {
		return o
	}
	return endpoint.Addresses
}

// KeyOf returns the key of an endpoint, or false if the endpoint has no addresses. Endpoints behind
// a proxy have different keys.
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
