package envoy

import (
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/understudy-lb/understudy/discovery"
	whereabouts "github.com/understudy-lb/understudy/internal/location"
)

// hintsIn is the key in filter_metadata under which an endpoint has its node and its topology
// hints:
//
// metadata: {filter_metadata: {understudy.dev: {node: n1, forZones: [a], forNodes: [n1]}}}
const hintsIn = "understudy.dev"

// mostHints limits the number of zones, and of nodes, in an endpoint's hints. Kubernetes allows at
// most 8.
const mostHints = 64

// hint sets the node and the hints of an endpoint from its metadata. It ignores invalid values
// instead of rejecting the cluster, because hints only move calls within a priority.
func hint(lb *endpointv3.LbEndpoint, to *discovery.Endpoint) {
	fields := lb.GetMetadata().GetFilterMetadata()[hintsIn].GetFields()
	if node := fields["node"].GetStringValue(); whereabouts.Problem(node) == "" {
		to.Node = node
	}
	to.ForZones, to.ForNodes = namesIn(fields["forZones"]), namesIn(fields["forNodes"])
}

// namesIn returns the valid names in a list, or nil if the list is too long.
func namesIn(v *structpb.Value) (names []string) {
	values := v.GetListValue().GetValues()
	if len(values) > mostHints {
		return nil
	}
	for _, v := range values {
		if name := v.GetStringValue(); name != "" && whereabouts.Problem(name) == "" {
			names = append(names, name)
		}
	}
	return names
}
