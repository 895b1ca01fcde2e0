// Package hierarchy implements the public package hierarchy. In addition, it restores the
// endpoints that a resolver has sealed.
package hierarchy

import (
	"slices"

	"google.golang.org/grpc/resolver"
)

type pathKey struct{}

// path has an Equal method, without which attributes.Equal would panic, because slices cannot be
// compared.
type path []string

func (p path) Equal(other any) bool {
	o, ok := other.(path)
	return ok && slices.Equal(p, o)
}

// Set implements Set of the public package hierarchy.
func Set(endpoint resolver.Endpoint, elements ...string) resolver.Endpoint {
	p := make(path, len(elements))
	copy(p, elements)
	endpoint.Attributes = endpoint.Attributes.WithValue(pathKey{}, p)
	return endpoint
}

// Path implements Path of the public package hierarchy.
func Path(endpoint resolver.Endpoint) []string {
	p, ok := endpoint.Attributes.Value(pathKey{}).(path)
	if !ok {
		return nil
	}
	return append([]string{}, p...)
}

// Group implements Group of the public package hierarchy.
func Group(endpoints []resolver.Endpoint) map[string][]resolver.Endpoint {
	groups := make(map[string][]resolver.Endpoint)
	for len(endpoints) > 0 {
		// Endpoints of a group are usually adjacent. Appending them together allocates the group
		// only once.
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

// appendBelow appends endpoints to the group, without the first element of their paths.
func appendBelow(group, endpoints []resolver.Endpoint) []resolver.Endpoint {
	group = slices.Grow(group, len(endpoints))
	var last path
	// below is the path of the last endpoint without its first element. Endpoints with equal paths
	// share it, because paths are never modified.
	var below any
	for _, endpoint := range endpoints {
		if p := pathOf(endpoint); below == nil || !slices.Equal(p, last) {
			last, below = p, p[1:]
		}
		endpoint.Attributes = endpoint.Attributes.WithValue(pathKey{}, below)
		group = append(group, endpoint)
	}
	return group
}
