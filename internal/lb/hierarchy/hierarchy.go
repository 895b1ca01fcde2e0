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
	// stripped caches the last result of Strip. If endpoints share their attributes, they'll still
	// share them when they're stripped, and in later updates too. That's how policies recognize that
	// an endpoint hasn't changed.
	stripped atomic.Pointer[stripped]
}

type stripped struct {
	of, attributes *attributes.Attributes
	used           int // how many elements were removed from the path
}

func (p *path) Equal(other any) bool {
	o, ok := other.(*path)
	return ok && slices.Equal(p.elements, o.elements)
}

func pathOf(endpoint resolver.Endpoint) *path {
	p, _ := endpoint.Attributes.Value(pathKey{}).(*path)
	return p
}

// element returns element i of an endpoint's path, or nothing if the path is shorter.
func element(endpoint resolver.Endpoint, i int) []string {
	if p := pathOf(endpoint); p != nil && i < len(p.elements) {
		return p.elements[i : i+1]
	}
	return nil
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
	groups, below := Split(resolver.State{Endpoints: endpoints})
	for child, group := range groups {
		below.Endpoints = group
		groups[child] = Strip(below).Endpoints
	}
	return groups
}

// usedKey is the key of an int: how many leading elements of each path we should skip, because our
// policies have already used them and left them in place.
type usedKey struct{}

// Split is like Group, but it doesn't copy the endpoints, since 10,000 of them take 320 kB at each
// level of the tree. Their paths stay whole. Instead, the attributes of below say how many elements
// are used up. Only our own policies understand such a state, so call Strip before others get it.
func Split(state resolver.State) (groups map[string][]resolver.Endpoint, below resolver.State) {
	groups = make(map[string][]resolver.Endpoint)
	used, _ := state.Attributes.Value(usedKey{}).(int)
	all := state.Endpoints
	for begin, end := 0, 0; begin < len(all); begin = end {
		child := element(all[begin], used)
		for end < len(all) && slices.Equal(element(all[end], used), child) {
			end++
		}
		if len(child) > 0 && groups[child[0]] == nil {
			groups[child[0]] = all[begin:end:end]
		} else if len(child) > 0 {
			groups[child[0]] = append(groups[child[0]], all[begin:end]...)
		}
	}
	state.Endpoints, state.Attributes = nil, state.Attributes.WithValue(usedKey{}, used+1)
	return groups, state
}

// Strip removes the path elements that our policies have already used. Other policies don't know
// usedKey, so they expect paths without them.
func Strip(state resolver.State) resolver.State {
	used, _ := state.Attributes.Value(usedKey{}).(int)
	if used == 0 {
		return state
	}
	state.Attributes = state.Attributes.WithValue(usedKey{}, 0)
	state.Endpoints = slices.Clone(state.Endpoints)
	for i := range state.Endpoints {
		e := &state.Endpoints[i]
		p := pathOf(*e)
		last := p.stripped.Load()
		if last == nil || last.of != e.Attributes || last.used != used {
			last = &stripped{e.Attributes, e.Attributes.WithValue(pathKey{}, &path{elements: p.elements[used:]}), used}
			p.stripped.Store(last)
		}
		e.Attributes = last.attributes
	}
	return state
}
