// Package hierarchy implements the public package hierarchy. It also restores the endpoints that a
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
	// below is the last result of attributesBelow. Endpoints that share their attributes also share
	// them below, in each update, so policies recognize an unchanged endpoint.
	below atomic.Pointer[below]
}

// below has the attributes of an endpoint without the first element of its path.
type below struct {
	of, attributes *attributes.Attributes
	path           path
}

// Equal is used by Attributes.Equal.
func (p *path) Equal(other any) bool {
	o, ok := other.(*path)
	return ok && slices.Equal(p.elements, o.elements)
}

// attributesBelow returns attributes a, whose path is p, without the first element of the path.
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

// Set implements hierarchy.Set.
func Set(endpoint resolver.Endpoint, elements ...string) resolver.Endpoint {
	endpoint.Attributes = endpoint.Attributes.WithValue(pathKey{}, &path{elements: slices.Clone(elements)})
	return endpoint
}

// Path implements hierarchy.Path.
func Path(endpoint resolver.Endpoint) []string {
	p := pathOf(endpoint)
	if p == nil {
		return nil
	}
	return append([]string{}, p.elements...)
}

// Group implements hierarchy.Group. If the pointer to an endpoint's attributes is the same in two
// updates, the pointer to its attributes in the groups usually is, too.
func Group(endpoints []resolver.Endpoint) map[string][]resolver.Endpoint {
	groups := make(map[string][]resolver.Endpoint)
	all := make([]resolver.Endpoint, 0, len(endpoints))
	begin, child := 0, "" // the endpoints of all from begin on belong to child
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

// appendGroup adds endpoints to a group. It copies the endpoints only if the group is not empty.
func appendGroup(groups map[string][]resolver.Endpoint, child string, endpoints []resolver.Endpoint) {
	switch before, exists := groups[child]; {
	case exists:
		groups[child] = append(before, endpoints...)
	case len(endpoints) > 0:
		groups[child] = slices.Clip(endpoints)
	}
}
