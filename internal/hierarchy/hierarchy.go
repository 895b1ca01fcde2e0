// Package hierarchy implements the public package hierarchy. It also restores the endpoints that a
// resolver has sealed.
package hierarchy

import (
	"slices"

	"google.golang.org/grpc/attributes"
	"google.golang.org/grpc/resolver"
)

type pathKey struct{}

// path has an Equal method because attributes.Equal panics for values that cannot be compared, such
// as slices.
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

// Grouper groups the endpoints of successive updates, as Group does. If an endpoint has the same
// attribute pointer in two updates, its attributes in the groups also have the same pointer, so
// that policies can see that nothing has changed. The zero value is ready to use.
type Grouper struct {
	below map[*attributes.Attributes]below
}

// below is the result for an endpoint: its child, and its attributes for this child.
type below struct {
	child      string
	attributes *attributes.Attributes // nil if the endpoint belongs to no child
}

// mostShared limits the number of attributes that a Grouper remembers. More would mean that few
// endpoints share each of them.
const mostShared = 256

// Group groups endpoints like the function Group.
func (g *Grouper) Group(endpoints []resolver.Endpoint) map[string][]resolver.Endpoint {
	groups := make(map[string][]resolver.Endpoint)
	last := g.below
	g.below = make(map[*attributes.Attributes]below, len(last))
	all := make([]resolver.Endpoint, 0, len(endpoints))
	begin, child := 0, "" // start and child of the current run of consecutive endpoints in all
	var p path            // path of the previous endpoint
	var rest any          // p without its first element; equal paths share it
	for _, endpoint := range endpoints {
		at := endpoint.Attributes
		b, known := g.below[at]
		if !known {
			if b, known = last[at]; !known {
				if now := pathOf(endpoint); len(now) > 0 {
					if rest == nil || !slices.Equal(now, p) {
						p, rest = now, now[1:]
					}
					b = below{now[0], at.WithValue(pathKey{}, rest)}
				}
			}
			if len(g.below) < mostShared {
				g.below[at] = b
			}
		}
		if b.attributes == nil {
			continue
		}
		if b.child != child {
			add(groups, child, all[begin:])
			begin, child = len(all), b.child
		}
		endpoint.Attributes = b.attributes
		all = append(all, endpoint)
	}
	add(groups, child, all[begin:])
	return groups
}

// add adds endpoints to a group. It copies them only if the group already has some.
func add(groups map[string][]resolver.Endpoint, child string, endpoints []resolver.Endpoint) {
	switch before, some := groups[child]; {
	case some:
		groups[child] = append(before, endpoints...)
	case len(endpoints) > 0:
		groups[child] = slices.Clip(endpoints)
	}
}

func pathOf(endpoint resolver.Endpoint) path {
	p, _ := endpoint.Attributes.Value(pathKey{}).(path)
	return p
}
