package topology

import endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"

// Validate returns the error that Translate would return for cluster alone: nil, or an
// *Invalid. It is for a caller that reports mistakes before it uses a cluster. It is
// safe for concurrent use.
func Validate(cluster *endpointv3.ClusterLoadAssignment) error {
	var found problems
	check(cluster, &found)
	return found.err()
}
