package topology

import (
	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/hierarchy"
)

// Target is one target of a list of targets, each with a resolver of its own.
type Target struct {
	// Name is the child's name in understudy_priority: valid UTF-8, stable from
	// update to update, and different from those of the other parts.
	Name string
	// Endpoints are the answer of the part's resolver. They keep their attributes, any
	// weight among them. The slice is not modified.
	Endpoints []resolver.Endpoint
}

// Targets returns the tree over parts in priority order. Each part is one priority with
// one locality, and its requests for re-resolution are passed on. The same address may
// be in several parts, or several times in one. Targets is safe for concurrent use.
func Targets(parts []Target) Tree {
	const locality = Nowhere
	var tree Tree
	priorities := make([]priorityChild, 0, len(parts))
	for _, part := range parts {
		priorities = append(priorities, priorityChild{
			name:       part.Name,
			title:      part.Name,
			localities: map[string]uint32{locality: 1},
		})
		for _, endpoint := range part.Endpoints {
			tree.Endpoints = append(tree.Endpoints, hierarchy.Set(endpoint, part.Name, locality))
		}
	}
	tree.priorities = priorities
	return tree
}
