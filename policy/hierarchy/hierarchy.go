// Package hierarchy assigns endpoints to the policies of a tree by paths.
//
// A resolver passes a flat list of endpoints to a tree of load-balancing policies. The path of
// an endpoint names the children on the way from the root of the tree to a leaf. A policy with
// several children passes each endpoint to the child that the first element of the path names,
// and removes this element, so that the next policy finds its own element first. This is gRFC
// A56, "Hierarchical Addresses".
//
// The package is for third-party resolvers and policies. The sources of this module set the
// paths themselves. All functions are safe for concurrent use, because none of them modifies
// its input.
package hierarchy

import (
	"slices"

	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/lb/hierarchy"
)

// Set returns endpoint with the given path, which replaces its previous path. A path without
// elements means that the endpoint has reached its leaf.
func Set(endpoint resolver.Endpoint, elements ...string) resolver.Endpoint {
	return hierarchy.Set(endpoint, elements...)
}

// Path returns a copy of the endpoint's path. It returns nil if no path was set, and an empty
// slice if the last element was removed.
func Path(endpoint resolver.Endpoint) []string { return hierarchy.Path(endpoint) }

// Group groups endpoints by the first element of their paths, and removes that element. It
// keeps the order of the endpoints within each group:
//
//	10.0.0.1 [child0 localityA]      child0: 10.0.0.1 [localityA]
//	10.0.0.2 [child0 localityB]  ->          10.0.0.2 [localityB]
//	10.0.0.3 [child1 localityC]      child1: 10.0.0.3 [localityC]
//
// Endpoints without a path or with an empty path are omitted.
func Group(endpoints []resolver.Endpoint) map[string][]resolver.Endpoint {
	return hierarchy.Group(endpoints)
}

// Seal returns state with a copy of its endpoints in its attributes. The policies of this module
// restore the endpoints from this copy. A resolver that sets paths must call Seal on every state it
// sends.
//
// If a proxy is configured (HTTPS_PROXY), grpc-go rebuilds each endpoint from its addresses before
// the load-balancing policy receives it. It drops the endpoint's attributes (path, weight) and the
// server names of its addresses. It keeps the state's attributes, and the number and order of the
// endpoints.
func Seal(state resolver.State) resolver.State {
	state.Endpoints = slices.Clone(state.Endpoints)
	return hierarchy.Seal(state)
}
