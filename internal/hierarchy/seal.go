package hierarchy

import "google.golang.org/grpc/resolver"

// sealKey is the key of the sealed endpoints in a resolver state's attributes.
type sealKey struct{}

// sealed is kept behind a pointer: to compare attributes is then to compare pointers.
type sealed struct {
	endpoints []resolver.Endpoint
}

// Seal returns state with a copy of its endpoints in its attributes, where
// Unseal finds it. A resolver that sets paths calls it on every state it sends.
//
// Where a proxy is configured (HTTPS_PROXY), grpc-go rebuilds each endpoint from
// its addresses on the way to the load-balancing policy, and drops the
// endpoint's attributes (path, weight) and its addresses' server names. The
// state's attributes, and the number and order of the endpoints, survive.
func Seal(state resolver.State) resolver.State {
	endpoints := append([]resolver.Endpoint(nil), state.Endpoints...)
	state.Attributes = state.Attributes.WithValue(sealKey{}, &sealed{endpoints: endpoints})
	return state
}

// Unseal restores the endpoints of a state as they were at Seal, and returns the state
// without the sealed copy. Every policy with several children calls it first, on each
// state that it is given.
//
// Attributes and server names are restored by the index of the endpoint, and
// only where no endpoint carries a path and there are as many endpoints as were
// sealed. A state that was never sealed is returned as it is.
func Unseal(state resolver.State) resolver.State {
	s, ok := state.Attributes.Value(sealKey{}).(*sealed)
	if !ok || s == nil {
		return state
	}
	state.Attributes = state.Attributes.WithValue(sealKey{}, (*sealed)(nil))
	if len(state.Endpoints) != len(s.endpoints) || anyPath(state.Endpoints) {
		return state
	}
	endpoints := make([]resolver.Endpoint, len(state.Endpoints))
	for i, endpoint := range state.Endpoints {
		endpoints[i] = restore(endpoint, s.endpoints[i])
	}
	state.Endpoints = endpoints
	return state
}

func anyPath(endpoints []resolver.Endpoint) bool {
	for _, endpoint := range endpoints {
		if endpoint.Attributes.Value(pathKey{}) != nil {
			return true
		}
	}
	return false
}

// restore gives endpoint the attributes of original, and each address the
// server name of the original address that it was made from.
func restore(endpoint, original resolver.Endpoint) resolver.Endpoint {
	endpoint.Attributes = original.Attributes.WithValue(originKey{}, origin(original.Addresses))
	endpoint.Addresses = restoreServerNames(endpoint.Addresses, original.Addresses)
	return endpoint
}

// restoreServerNames gives each address the server name of the original that it was
// made from. Behind a proxy, gRPC replaces an original by all addresses of the proxy,
// side by side. It leaves an original that needs no proxy alone:
//
//	originals: 192.0.2.1 (a)  10.0.0.1 (b)     two addresses of the proxy, and
//	addresses: proxy1 proxy2  10.0.0.1 (b)     10.0.0.1 is in NO_PROXY
//	result:    proxy1 (a) proxy2 (a)  10.0.0.1 (b)
func restoreServerNames(addresses, originals []resolver.Address) []resolver.Address {
	direct := make(map[addressID]bool, len(addresses))
	for _, address := range addresses {
		direct[id(address)] = true
	}
	proxied, left := 0, len(addresses)
	for _, original := range originals {
		if direct[id(original)] {
			left--
		} else {
			proxied++
		}
	}
	if proxied == 0 || left < 0 || left%proxied != 0 {
		return addresses
	}
	restored := make([]resolver.Address, 0, len(addresses))
	for _, original := range originals {
		n := left / proxied
		if direct[id(original)] {
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

// addressID tells an address that was left alone from one of the proxy's.
type addressID struct{ addr, serverName string }

func id(address resolver.Address) addressID {
	return addressID{address.Addr, address.ServerName}
}

// originKey is the key of the sealed addresses among the attributes of an endpoint that
// Unseal restored.
type originKey struct{}

type origin []resolver.Address

// Equal reports whether other holds the same addresses.
func (o origin) Equal(other any) bool {
	p, ok := other.(origin)
	if !ok || len(o) != len(p) {
		return false
	}
	for i := range o {
		if !o[i].Equal(p[i]) {
			return false
		}
	}
	return true
}

// Addresses returns the addresses that the resolver gave endpoint. They differ from
// endpoint.Addresses only behind a proxy. There the latter are the proxy's for every
// endpoint, so they cannot tell two endpoints apart. A policy identifies an endpoint by
// Addresses, and connects to endpoint.Addresses. The result must not be modified.
func Addresses(endpoint resolver.Endpoint) []resolver.Address {
	if o, ok := endpoint.Attributes.Value(originKey{}).(origin); ok {
		return o
	}
	return endpoint.Addresses
}
