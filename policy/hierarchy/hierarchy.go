// Package hierarchy assigns endpoints to the policies of a tree.
//
// Resolvers pass a flat list of endpoints to a tree of load-balancing policies. Each endpoint can
// have a path, which names the children from the root of the tree down to a leaf. A policy with
// several children looks at the first element of the path, removes it, and passes the endpoint to
// the child of that name. The next policy then finds its own element first. gRFC A56 describes this
// in "Hierarchical Addresses".
//
// This package is for third-party resolvers and policies. The sources of this module set paths
// themselves. All functions are safe for concurrent use, since they don't modify their input.
package hierarchy

import (
	"slices"

	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/lb/hierarchy"
)

// Set returns endpoint with the given path instead of any previous one. A path without elements
// means that the endpoint has reached its leaf.
func Set(endpoint resolver.Endpoint, elements ...string) resolver.Endpoint {
	return hierarchy.Set(endpoint, elements...)
}

// Path returns a copy of the endpoint's path. It returns nil if no path was ever set, and an empty
// slice if the last element has been removed.
func Path(endpoint resolver.Endpoint) []string { return hierarchy.Path(endpoint) }

// Group groups endpoints by the first element of their path, and removes that element. Within a
// group, the endpoints keep their order:
//
//	10.0.0.1 [child0 localityA]      child0: 10.0.0.1 [localityA]
//	10.0.0.2 [child0 localityB]  ->          10.0.0.2 [localityB]
//	10.0.0.3 [child1 localityC]      child1: 10.0.0.3 [localityC]
//
// Endpoints with no path, or with an empty one, are left out.
func Group(endpoints []resolver.Endpoint) map[string][]resolver.Endpoint {
	return hierarchy.Group(endpoints)
}

// Seal returns state with a copy of its endpoints in its attributes, from which the policies of
// this module can restore them. If your resolver sets paths, call Seal on every state before you
// send it.
//
// This is needed because of HTTPS_PROXY. If a proxy is configured, grpc-go rebuilds each endpoint
// from its addresses before the load-balancing policy sees it. The endpoint's attributes (path,
// weight) and the server names of its addresses get lost that way. What remains are the state's
// attributes, and the number and order of the endpoints.
func Seal(state resolver.State) resolver.State {
	state.Endpoints = slices.Clone(state.Endpoints)
	return hierarchy.Seal(state)
}
