// Package hierarchy says which endpoint belongs to which policy of a tree.
//
// A resolver hands a tree of load-balancing policies one flat list of
// endpoints. Each endpoint carries the path, from the root of the tree to a
// leaf, of the children that it is meant for. A policy with several children
// reads the first element of each path, gives the endpoint to the child of that
// name, and takes the element off, so that the next policy down finds its own
// first. This is gRFC A56, "Hierarchical Addresses".
//
// It is for resolvers and policies of others: the sources of this module set the paths
// themselves. All functions are safe for concurrent use: none of them modifies its input.
package hierarchy

import (
	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/hierarchy"
)

// Set returns endpoint with the given path in place of its own. Without elements the
// path is empty: the endpoint has arrived at its leaf.
func Set(endpoint resolver.Endpoint, elements ...string) resolver.Endpoint {
	return hierarchy.Set(endpoint, elements...)
}

// Path returns a copy of the endpoint's path. It is nil where Set was never called, and
// an empty slice where the last element has been taken off.
func Path(endpoint resolver.Endpoint) []string { return hierarchy.Path(endpoint) }

// Group splits endpoints by the first element of their paths and takes that
// element off, keeping the order of the endpoints within each group:
//
//	10.0.0.1 [child0 localityA]      child0: 10.0.0.1 [localityA]
//	10.0.0.2 [child0 localityB]  ->          10.0.0.2 [localityB]
//	10.0.0.3 [child1 localityC]      child1: 10.0.0.3 [localityC]
//
// Endpoints without a path, and those whose path is empty, are in no group.
func Group(endpoints []resolver.Endpoint) map[string][]resolver.Endpoint {
	return hierarchy.Group(endpoints)
}

// Seal returns state with a copy of its endpoints in its attributes, where the policies of
// this module find it. A resolver that sets paths calls it on every state it sends.
//
// Where a proxy is configured (HTTPS_PROXY), grpc-go rebuilds each endpoint from
// its addresses on the way to the load-balancing policy, and drops the
// endpoint's attributes (path, weight) and its addresses' server names. The
// state's attributes, and the number and order of the endpoints, survive.
func Seal(state resolver.State) resolver.State { return hierarchy.Seal(state) }
