package topology

import (
	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/hierarchy"
)

// Target is one of the targets in a list. Each has its own resolver.
type Target struct {
	// Name is the child's name in understudy_priority. It is valid UTF-8, stable from update to
	// update, and unique among the targets.
	Name string
	// Endpoints are the endpoints of the target's resolver. They keep their attributes, including
	// weights. The slice is not modified.
	Endpoints []resolver.Endpoint
}

// Targets returns the tree for targets in priority order. Each target becomes a priority with a
// single locality, whose requests for re-resolution are passed on. The same address may be in
// several targets, or several times in one. Targets is safe for concurrent use.
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
