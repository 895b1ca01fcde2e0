// Package topology turns clusters in priority order into what a resolver sends to
// a channel: endpoints with their paths and weights, and the configuration of the
// tree of policies that they are for.
//
// The tree has one shape, whatever the cluster:
//
//	understudy_priority
//	  understudy_outlier_detection           one for each priority
//	    understudy_drop
//	      understudy_weighted_target         one child for each locality
//	        understudy_weighted_round_robin  one endpoint for each leaf
//
// so that an update never changes the type of a policy, which would cost all the
// connections below it. A path has two elements: the child of understudy_priority,
// and the locality.
//
// The names of children are kept from update to update (gRFC A56, "LB Policy
// Configuration"): the connections to an endpoint outlive changes of weights, of
// its neighbours, and of its priority.
//
// Everything here is a function of its input: no goroutines, clocks or sockets. The
// package does not register the policies that it names; sources of endpoints do.
package topology

import (
	"encoding/json"
	"slices"

	"google.golang.org/grpc/resolver"
)

// Tree is what a resolver sends to a channel.
type Tree struct {
	// Endpoints carry their paths (package hierarchy) and weights (grpc's
	// experimental/balancer/weight), in priority order.
	Endpoints []resolver.Endpoint
	// Config is the value of loadBalancingConfig in a service config. Equal trees
	// have equal bytes.
	Config json.RawMessage
	// Notes say what in the input has no effect and may surprise, such as a
	// locality without traffic. There are at most MaxProblems.
	Notes []Problem
	// Empty says why the tree has no priorities, "" where it has some.
	Empty string

	groups []group
}

// Priority is one priority of a tree.
type Priority struct {
	// Child is its child of understudy_priority, and the first element of the paths.
	Child string
	// Name is what people call it: the localities in it, such as "us-east/a,
	// us-east/b", or the part of a list of targets.
	Name string
}

// Priorities returns the priorities of the tree in order.
func (t Tree) Priorities() []Priority {
	var priorities []Priority
	for _, g := range t.groups {
		priorities = append(priorities, Priority{g.name, g.title})
	}
	return priorities
}

// Reresolving returns the tree with requests for re-resolution obeyed in all priorities.
func (t Tree) Reresolving() Tree {
	t.groups = slices.Clone(t.groups)
	for i := range t.groups {
		t.groups[i].ignoreReresolution = false
	}
	t.Config = encode(t.groups, Settings{})
	return t
}

// Join returns the tree over all priorities of the first of trees, then those of the
// second, and so on (gRFC A37), whose policies have the given settings. The names of
// children must differ between trees: see Translator.Name and Part.Name.
func Join(settings Settings, trees ...Tree) Tree {
	var joined Tree
	if len(trees) == 1 {
		joined = trees[0] // most channels have one, which is not copied
		trees = nil
	}
	for _, tree := range trees {
		joined.Endpoints = append(joined.Endpoints, tree.Endpoints...)
		joined.Notes = append(joined.Notes, tree.Notes...)
		joined.groups = append(joined.groups, tree.groups...)
	}
	joined.Config = encode(joined.groups, settings)
	return joined
}
