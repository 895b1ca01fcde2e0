package topology

import (
	"slices"

	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/lb/hierarchy"
)

// Plain returns the tree for the endpoints of a gRPC resolver: one priority with one locality,
// which passes on requests for re-resolution. name is the name of the child of understudy_priority,
// in valid UTF-8; it must not change between updates. We verify certificates against serverName or,
// if it is "", against the channel's authority. Endpoints without an address are left out. The
// others keep their attributes, including weights.
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
