// Package topology turns clusters in priority order into what a resolver sends to
// a channel: endpoints with their paths and weights, and the configuration of the
// tree of policies that they are for.
//
// The tree has one shape, whatever the cluster:
//
//	understudy_priority
//	  understudy_drop                      one for each priority
//	    understudy_weighted_target         one child for each locality
//	      understudy_weighted_round_robin  one endpoint for each leaf
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
}
