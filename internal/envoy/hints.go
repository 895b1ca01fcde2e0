package envoy

import (
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/understudy-lb/understudy/discovery"
	whereabouts "github.com/understudy-lb/understudy/internal/location"
)

// hintsIn is the key of an endpoint's filter_metadata that has where it runs, and for whom it is:
//
//	metadata: {filter_metadata: {understudy.dev: {node: n1, forZones: [a], forNodes: [n1]}}}
const hintsIn = "understudy.dev"

// mostHints is how many zones or nodes an endpoint may name. Kubernetes has 8 at most.
const mostHints = 64

// hint sets what the metadata of an endpoint says of its place. Whatever is not as it should be counts
// as not given: it moves calls within a priority, and is no reason to refuse an endpoint.
func hint(lb *endpointv3.LbEndpoint, to *discovery.Endpoint) {
	fields := lb.GetMetadata().GetFilterMetadata()[hintsIn].GetFields()
	if node := fields["node"].GetStringValue(); whereabouts.Problem(node) == "" {
		to.Node = node
	}
	to.ForZones, to.ForNodes = namesIn(fields["forZones"]), namesIn(fields["forNodes"])
}

// namesIn returns the names in a list, nil where it is none, or is too long.
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
