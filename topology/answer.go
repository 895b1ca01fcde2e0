package topology

import (
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/grpc/resolver"
)

// Answer is what a source of endpoints has found.
type Answer struct {
	// Cluster is a list of priorities, with localities, weights and drops. It must keep
	// the rules of Translator.Translate, and is not modified. Where it is nil,
	// Endpoints count.
	Cluster *endpointv3.ClusterLoadAssignment
	// Endpoints are one priority with one locality. They keep their attributes, any
	// weight among them. The slice is not modified.
	Endpoints []resolver.Endpoint
	// Empty says that it is meant where the answer holds no endpoint: calls then fail, or go
	// to the next priority. Without it such an answer counts as a failure, and the last one
	// stays in use: a registry that is starting, or a query that matches nothing for a moment,
	// must not take all clients down. It has no effect where there are endpoints.
	Empty bool
	// Version is what the source calls this state of what it knows, for people; "" where it
	// has no name for it.
	Version string
	// Explain, which may be nil, turns the problems of the Cluster into an error in the
	// words of its author, such as one with the lines of a file.
	Explain func(*Invalid) error
}
