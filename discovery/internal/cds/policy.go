package cds

import (
	"strings"

	typev3 "github.com/cncf/xds/go/xds/type/v3"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	roundrobinv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/round_robin/v3"
	wrrlocalityv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/wrr_locality/v3"
	"google.golang.org/protobuf/types/known/anypb"
)

// ours is the name of the policy that every cluster gets (A34).
const ours = "understudy_weighted_round_robin"

// checkPolicy checks the cluster's policy. There is one, which follows the weights. It
// stands for ROUND_ROBIN, and for its equivalents in a list of policies (gRFC A52).
func (r *reader) checkPolicy() {
	const want = "want ROUND_ROBIN, which is by weight"
	list := r.from.GetLoadBalancingPolicy()
	if list == nil {
		if p := r.from.GetLbPolicy(); p != clusterv3.Cluster_ROUND_ROBIN {
			r.add("lb_policy", "lb_policy %v is not supported, %s", p, want)
		}
		return
	}
	var given []string
	for _, p := range list.GetPolicies() {
		config := p.GetTypedExtensionConfig().GetTypedConfig()
		if roundRobin(config) {
			return
		}
		given = append(given, config.GetTypeUrl()[strings.LastIndexByte(config.GetTypeUrl(), '/')+1:])
	}
	r.add("load_balancing_policy", "none of the policies is supported (%.300s), %s", strings.Join(given, ", "), want)
}

// roundRobin returns whether a policy sends each endpoint its share.
func roundRobin(config *anypb.Any) bool {
	var locality wrrlocalityv3.WrrLocality
	var other typev3.TypedStruct
	switch {
	case config.MessageIs(&roundrobinv3.RoundRobin{}):
		return true
	case config.MessageIs(&locality):
		if config.UnmarshalTo(&locality) != nil {
			return false
		}
		for _, p := range locality.GetEndpointPickingPolicy().GetPolicies() {
			if inner := p.GetTypedExtensionConfig().GetTypedConfig(); !inner.MessageIs(&locality) && roundRobin(inner) {
				return true
			}
		}
	case config.MessageIs(&other):
		return config.UnmarshalTo(&other) == nil && strings.HasSuffix(other.GetTypeUrl(), "/"+ours)
	}
	return false
}
