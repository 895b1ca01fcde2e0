// Package hierarchy implements the public package hierarchy. In addition, it restores the
// endpoints that a resolver has sealed.
package hierarchy

import (
	"slices"

	"google.golang.org/grpc/resolver"
)

// pathKey is the attribute key of an endpoint's path.
type pathKey struct{}

// path is the value of pathKey. It has an Equal method, because attributes.Equal panics if it
// compares values with == that are not comparable, such as slices.
type path []string

func (p path) Equal(other any) bool {
	o, ok := other.(path)
	return ok && slices.Equal(p, o)
}

// Set returns endpoint with the given path instead of its previous one. Without elements, the
// path is empty: the endpoint has reached its leaf.
func Set(endpoint resolver.Endpoint, elements ...string) resolver.Endpoint {
	p := make(path, len(elements))
	copy(p, elements)
	endpoint.Attributes = endpoint.Attributes.WithValue(pathKey{}, p)
	return endpoint
}

// Path returns a copy of the endpoint's path. It returns nil if no path was set, and an empty
// slice if the last element was removed.
func Path(endpoint resolver.Endpoint) []string {
	p, ok := endpoint.Attributes.Value(pathKey{}).(path)
	if !ok {
		return nil
	}
	return append([]string{}, p...)
}

// Group groups endpoints by the first element of their paths, and removes that element. It
// keeps the order of the endpoints within each group:
//
//	10.0.0.1 [child0 localityA]      child0: 10.0.0.1 [localityA]
//	10.0.0.2 [child0 localityB]  ->          10.0.0.2 [localityB]
//	10.0.0.3 [child1 localityC]      child1: 10.0.0.3 [localityC]
//
// Endpoints without a path or with an empty path are omitted.
func Group(endpoints []resolver.Endpoint) map[string][]resolver.Endpoint {
	groups := make(map[string][]resolver.Endpoint)
	for len(endpoints) > 0 {
		// The endpoints of a group are usually adjacent. Append them together, so that the
		// group is allocated once.
		p := pathOf(endpoints[0])
		n := 1
		for n < len(endpoints) && sameGroup(p, pathOf(endpoints[n])) {
			n++
		}
		if len(p) > 0 {
			groups[p[0]] = appendBelow(groups[p[0]], endpoints[:n])
		}
		endpoints = endpoints[n:]
	}
	return groups
}

func pathOf(endpoint resolver.Endpoint) path {
	p, _ := endpoint.Attributes.Value(pathKey{}).(path)
	return p
}

func sameGroup(a, b path) bool {
	return len(a) == 0 && len(b) == 0 || len(a) > 0 && len(b) > 0 && a[0] == b[0]
}

// appendBelow appends the endpoints to the group and removes the first element of their paths.
func appendBelow(group, endpoints []resolver.Endpoint) []resolver.Endpoint {
	group = slices.Grow(group, len(endpoints))
	var last path
	var below any // last without its first element, shared by the endpoints because paths are never modified
	for _, endpoint := range endpoints {
		if p := pathOf(endpoint); below == nil || !slices.Equal(p, last) {
			last, below = p, p[1:]
		}
		endpoint.Attributes = endpoint.Attributes.WithValue(pathKey{}, below)
		group = append(group, endpoint)
	}
	return group
}
