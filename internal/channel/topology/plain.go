package topology

import (
	"slices"

	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/lb/hierarchy"
)

// Plain returns the tree for the endpoints of a gRPC resolver. It has a single priority with one
// locality, and passes on requests for re-resolution. name is what we call the child of
// understudy_priority. It must be valid UTF-8 and stay the same across updates. We verify
// certificates against serverName, or the channel's authority if it's "". Endpoints without an
// address are dropped; the rest keep their attributes, including weights.
func Plain(name, serverName string, endpoints []resolver.Endpoint) Tree {
	var tree Tree
	for _, e := range endpoints {
		if len(e.Addresses) == 0 {
			continue
		}
		e.Addresses = slices.Clone(e.Addresses)
		for i := range e.Addresses {
			e.Addresses[i].ServerName = serverName
		}
		tree.Endpoints = append(tree.Endpoints, hierarchy.Set(e, name, NoLocality))
	}
	tree.Priorities = []TreePriority{{Child: name, Name: name, localities: []treeLocality{{NoLocality, 1, len(tree.Endpoints)}}}}
	return tree
}
