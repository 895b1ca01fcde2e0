package file

import (
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// complete fills in what a file may leave out and a control plane may not: the
// cluster's name, which becomes the one given; the locality, which becomes one
// of which nothing is known; and the localities' weights, which become 1 in each
// priority where none is given.
func complete(cluster *endpointv3.ClusterLoadAssignment, name string) {
	if cluster.GetClusterName() == "" {
		cluster.ClusterName = name
	}
	weighted := make(map[uint32]bool)
	for _, locality := range cluster.GetEndpoints() {
		if locality.GetLoadBalancingWeight() != nil {
			weighted[locality.GetPriority()] = true
		}
	}
	for _, locality := range cluster.GetEndpoints() {
		if locality.GetLocality() == nil {
			locality.Locality = &corev3.Locality{}
		}
		if !weighted[locality.GetPriority()] {
			locality.LoadBalancingWeight = wrapperspb.UInt32(1)
		}
	}
}
