package topology

import (
	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/lb/hierarchy"
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

// Targets returns the tree for several targets, which are in priority order. Each target becomes a
// priority with one locality. The priority passes on requests for re-resolution. The same address
// may be in several targets. Targets is safe for concurrent use.
func Targets(targets []Target) Tree {
	const locality = NoLocality
	var tree Tree
	priorities := make([]priorityChild, 0, len(targets))
	for _, target := range targets {
		priorities = append(priorities, priorityChild{
			name:       target.Name,
			title:      target.Name,
			localities: map[string]uint32{locality: 1},
		})
		for _, endpoint := range target.Endpoints {
			tree.Endpoints = append(tree.Endpoints, hierarchy.Set(endpoint, target.Name, locality))
		}
	}
	tree.priorities = priorities
	return tree
}
