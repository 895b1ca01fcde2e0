// Package hierarchy is what the public package of this name, which describes the paths,
// shares with the policies: those restore what a resolver sealed.
package hierarchy

import (
	"slices"

	"google.golang.org/grpc/resolver"
)

// pathKey is the key of the path among an endpoint's attributes.
type pathKey struct{}

// path is the value under pathKey. It has Equal because attributes.Equal panics
// when it compares values of a type that == cannot compare, such as a slice.
type path []string

// Equal reports whether other is a path with the same elements.
func (p path) Equal(other any) bool {
	o, ok := other.(path)
	return ok && slices.Equal(p, o)
}

// Set returns endpoint with the given path in place of its own. Without elements the
// path is empty: the endpoint has arrived at its leaf.
func Set(endpoint resolver.Endpoint, elements ...string) resolver.Endpoint {
	p := make(path, len(elements))
	copy(p, elements)
	endpoint.Attributes = endpoint.Attributes.WithValue(pathKey{}, p)
	return endpoint
}

// Path returns a copy of the endpoint's path. It is nil where Set was never called, and
// an empty slice where the last element has been taken off.
func Path(endpoint resolver.Endpoint) []string {
	p, ok := endpoint.Attributes.Value(pathKey{}).(path)
	if !ok {
		return nil
	}
	return append([]string{}, p...)
}

// Group splits endpoints by the first element of their paths and takes that
// element off, keeping the order of the endpoints within each group:
//
//	10.0.0.1 [child0 localityA]      child0: 10.0.0.1 [localityA]
//	10.0.0.2 [child0 localityB]  ->          10.0.0.2 [localityB]
//	10.0.0.3 [child1 localityC]      child1: 10.0.0.3 [localityC]
//
// Endpoints without a path, and those whose path is empty, are in no group.
func Group(endpoints []resolver.Endpoint) map[string][]resolver.Endpoint {
	groups := make(map[string][]resolver.Endpoint)
	for len(endpoints) > 0 {
		// Most often those of one group follow each other. Then the group has its place
		// at once.
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

// appendBelow appends the endpoints to the group without the first elements of their
// paths.
func appendBelow(group, endpoints []resolver.Endpoint) []resolver.Endpoint {
	group = slices.Grow(group, len(endpoints))
	var last path
	var below any // the rest of last: paths are never modified, so endpoints share it
	for _, endpoint := range endpoints {
		if p := pathOf(endpoint); below == nil || !slices.Equal(p, last) {
			last, below = p, p[1:]
		}
		endpoint.Attributes = endpoint.Attributes.WithValue(pathKey{}, below)
		group = append(group, endpoint)
	}
	return group
}
