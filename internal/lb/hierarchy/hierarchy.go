// Package hierarchy implements the public package hierarchy. It also restores endpoints that a
// resolver has sealed.
package hierarchy

import (
	"slices"
	"sync/atomic"

	"google.golang.org/grpc/attributes"
	"google.golang.org/grpc/resolver"
)

type pathKey struct{}

type path struct {
	elements []string
	// below caches the last result of attributesBelow. If endpoints share their attributes, they'll
	// still share them one level down, and in later updates too. That's how policies recognize that
	// an endpoint hasn't changed.
	below atomic.Pointer[below]
}

type below struct {
	of, attributes *attributes.Attributes
	path           path
}

func (p *path) Equal(other any) bool {
	o, ok := other.(*path)
	return ok && slices.Equal(p.elements, o.elements)
}

// attributesBelow removes the first element of p, which is the path in a.
func (p *path) attributesBelow(a *attributes.Attributes) *attributes.Attributes {
	b := p.below.Load()
	if b == nil || b.of != a {
		b = &below{of: a, path: path{elements: p.elements[1:]}}
		b.attributes = a.WithValue(pathKey{}, &b.path)
		p.below.Store(b)
	}
	return b.attributes
}

func pathOf(endpoint resolver.Endpoint) *path {
	p, _ := endpoint.Attributes.Value(pathKey{}).(*path)
	return p
}

func Set(endpoint resolver.Endpoint, elements ...string) resolver.Endpoint {
	endpoint.Attributes = endpoint.Attributes.WithValue(pathKey{}, &path{elements: slices.Clone(elements)})
	return endpoint
}

func Path(endpoint resolver.Endpoint) []string {
	p := pathOf(endpoint)
	if p == nil {
		return nil
	}
	return append([]string{}, p.elements...)
}

// Group implements hierarchy.Group. If an endpoint's attributes are the same pointer in two
// updates, its attributes in the group usually are too.
func Group(endpoints []resolver.Endpoint) map[string][]resolver.Endpoint {
	groups := make(map[string][]resolver.Endpoint)
	all := make([]resolver.Endpoint, 0, len(endpoints))
	begin, child := 0, "" // everything in all from begin on belongs to child
	for _, endpoint := range endpoints {
		p := pathOf(endpoint)
		if p == nil || len(p.elements) == 0 {
			continue
		}
		if p.elements[0] != child {
			appendGroup(groups, child, all[begin:])
			begin, child = len(all), p.elements[0]
		}
		endpoint.Attributes = p.attributesBelow(endpoint.Attributes)
		all = append(all, endpoint)
	}
	appendGroup(groups, child, all[begin:])
	return groups
}

func appendGroup(groups map[string][]resolver.Endpoint, child string, endpoints []resolver.Endpoint) {
	switch before, exists := groups[child]; {
	case exists:
		groups[child] = append(before, endpoints...)
	case len(endpoints) > 0:
		groups[child] = slices.Clip(endpoints)
	}
}
