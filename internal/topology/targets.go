package topology

import (
	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/hierarchy"
)

// Target is one of several targets of a channel, each with its own resolver.
type Target struct {
	// Name is the name of the child of understudy_priority. It is valid UTF-8, differs from the
	// other targets' names, and must not change between updates.
	Name string
	// Endpoints are the endpoints from the target's resolver. They keep their attributes, including
	// weights. The slice is not modified.
	Endpoints []resolver.Endpoint
}

// Targets returns the tree for targets in priority order. Each target becomes a priority with one
// locality. The priority passes on requests for re-resolution. Targets may have duplicate
// addresses. Targets may be called concurrently.
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
