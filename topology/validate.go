package topology

import endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"

// Validate returns the error that Translate would return for cluster alone: nil,
// or an *Invalid. It is for those who have to say what is wrong with a cluster
// before they use it.
func Validate(cluster *endpointv3.ClusterLoadAssignment) error {
	var found problems
	check(cluster, "", &found)
	return found.err()
}
