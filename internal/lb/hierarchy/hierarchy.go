// Package hierarchy implements the public package hierarchy. It also restores the endpoints that a
// resolver has sealed.
package hierarchy

import (
	"slices"

	"google.golang.org/grpc/attributes"
	"google.golang.org/grpc/resolver"
)

type pathKey struct{}

// path has a method Equal, because Attributes.Equal panics for slices, which cannot be compared
// with ==.
type path []string

func (p path) Equal(other any) bool {
	o, ok := other.(path)
	return ok && slices.Equal(p, o)
}

// Set implements hierarchy.Set.
func Set(endpoint resolver.Endpoint, elements ...string) resolver.Endpoint {
	p := make(path, len(elements))
	copy(p, elements)
	endpoint.Attributes = endpoint.Attributes.WithValue(pathKey{}, p)
	return endpoint
}

// Path implements hierarchy.Path.
func Path(endpoint resolver.Endpoint) []string {
	p, ok := endpoint.Attributes.Value(pathKey{}).(path)
	if !ok {
		return nil
	}
	return append([]string{}, p...)
}

// Group implements hierarchy.Group.
func Group(endpoints []resolver.Endpoint) map[string][]resolver.Endpoint {
	return new(Grouper).Group(endpoints)
}

// Grouper groups the endpoints of successive updates like Group. If the pointer to an endpoint's
// attributes is the same in two updates, the pointer to its attributes in the groups is also the
// same. Policies therefore recognize an unchanged endpoint. The zero value is ready to use.
type Grouper struct {
	results map[*attributes.Attributes]childEndpoint
}

// childEndpoint is the child to which an endpoint belongs, and the attributes of the endpoint for
// this child.
type childEndpoint struct {
	child      string
	attributes *attributes.Attributes // nil if the endpoint belongs to no child
}

// maxShared is the maximum number of attributes that a Grouper remembers. If there are more, few
// endpoints share the same attributes.
const maxShared = 256

// Group groups endpoints like the function Group.
func (g *Grouper) Group(endpoints []resolver.Endpoint) map[string][]resolver.Endpoint {
	groups := make(map[string][]resolver.Endpoint)
	previous := g.results
	g.results = make(map[*attributes.Attributes]childEndpoint, len(previous))
	all := make([]resolver.Endpoint, 0, len(endpoints))
	begin, child := 0, "" // the endpoints of all from begin on belong to child
	var previousPath path // path of the previous endpoint
	var rest any          // previousPath without its first element; consecutive endpoints with equal paths share it
	for _, endpoint := range endpoints {
		attrs := endpoint.Attributes
		b, isKnown := g.results[attrs]
		if !isKnown {
			if b, isKnown = previous[attrs]; !isKnown {
				if current := pathOf(endpoint); len(current) > 0 {
					if rest == nil || !slices.Equal(current, previousPath) {
						previousPath, rest = current, current[1:]
					}
					b = childEndpoint{current[0], attrs.WithValue(pathKey{}, rest)}
				}
			}
			if len(g.results) < maxShared {
				g.results[attrs] = b
			}
		}
		if b.attributes == nil {
			continue
		}
		if b.child != child {
			appendGroup(groups, child, all[begin:])
			begin, child = len(all), b.child
		}
		endpoint.Attributes = b.attributes
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

func pathOf(endpoint resolver.Endpoint) path {
	p, _ := endpoint.Attributes.Value(pathKey{}).(path)
	return p
}
