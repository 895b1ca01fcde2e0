package messages

import (
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/understudy-lb/understudy/discovery"
	whereabouts "github.com/understudy-lb/understudy/internal/net/location"
)

// hintsKey is the key in filter_metadata under which an endpoint has its node and its topology
// hints:
//
// metadata: {filter_metadata: {understudy.dev: {node: n1, forZones: [a], forNodes: [n1]}}}
const hintsKey = "understudy.dev"

// maxHints is the maximum number of zones, and of nodes, in an endpoint's hints. Kubernetes allows
// at most 8.
const maxHints = 64

// readHints sets the node and the hints of an endpoint from its metadata. It ignores invalid values
// instead of rejecting the cluster, because hints only move calls within a priority.
func readHints(lb *endpointv3.LbEndpoint, endpoint *discovery.Endpoint) {
	fields := lb.GetMetadata().GetFilterMetadata()[hintsKey].GetFields()
	if node := fields["node"].GetStringValue(); whereabouts.Check(node) == nil {
		endpoint.Node = node
	}
	endpoint.ForZones, endpoint.ForNodes = readNames(fields["forZones"]), readNames(fields["forNodes"])
}

// readNames returns the valid names in a list, or nil if the list is too long.
func readNames(v *structpb.Value) (names []string) {
	values := v.GetListValue().GetValues()
	if len(values) > maxHints {
		return nil
	}
	for _, v := range values {
		if name := v.GetStringValue(); name != "" && whereabouts.Check(name) == nil {
			names = append(names, name)
		}
	}
	return names
}
