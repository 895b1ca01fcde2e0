// Package hierarchy implements the public package hierarchy. In addition, it restores the
// endpoints that a resolver has sealed.
package hierarchy

import (
	"slices"

	"google.golang.org/grpc/attributes"
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
	return new(Grouper).Group(endpoints)
}

// Grouper groups endpoints as Group does, update after update. Endpoints that had the same
// attributes before, as pointers, also have the same attributes below. The zero value is ready to
// use.
type Grouper struct {
	below map[*attributes.Attributes]below // of the last endpoints
}

// below is the child that an endpoint belongs to, and the endpoint's attributes there.
type below struct {
	child      string
	attributes *attributes.Attributes // nil if the endpoint belongs to no child
}

// mostShared limits how many attributes a Grouper remembers. It is meant for attributes that
// many endpoints share.
const mostShared = 256

// Group groups the endpoints.
func (g *Grouper) Group(endpoints []resolver.Endpoint) map[string][]resolver.Endpoint {
	groups := make(map[string][]resolver.Endpoint)
	last := g.below
	g.below = make(map[*attributes.Attributes]below, len(last))
	all := make([]resolver.Endpoint, 0, len(endpoints))
	begin, child := 0, "" // of the endpoints at the end of all, which belong to the same child
	var p path            // of the endpoint before
	var rest any          // p without its first element; shared by equal paths, which are never modified
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

// add adds endpoints to a group. It copies them only if the group has others.
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
