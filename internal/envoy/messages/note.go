package messages

import (
	"fmt"
	"slices"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"

	"github.com/understudy-lb/understudy/internal/config/lbconfig"
)

// addNotes adds notes about what gRPC ignores (gRFC A27), and about violations of Envoy's rules, but
// not within ignored fields.
func addNotes(cluster *endpointv3.ClusterLoadAssignment, notes *Invalid) {
	var ignored []string
	for i, locality := range cluster.GetEndpoints() {
		path := fmt.Sprintf("endpoints[%d]", i)
		if hasTraffic(locality) {
			noteUnused(locality, path, notes)
			continue
		}
		ignored = append(ignored, path+".")
		weight := "no weight"
		if locality.GetLoadBalancingWeight() != nil {
			weight = "weight 0"
		}
		notes.Add(path, "locality %q of priority %d has %s and gets no traffic", LocalityName(locality.GetLocality()), locality.GetPriority(), weight)
	}
	policy := cluster.GetPolicy()
	for _, field := range []struct {
		given bool
		path  string
	}{
		{policy.GetOverprovisioningFactor() != nil, "policy.overprovisioning_factor"},
		{policy.GetEndpointStaleAfter() != nil, "policy.endpoint_stale_after"},
		{policy.GetWeightedPriorityHealth(), "policy.weighted_priority_health"},
		{len(cluster.GetNamedEndpoints()) > 0, "named_endpoints"},
	} {
		if field.given {
			notes.Add(field.path, "%s has no effect", strings.TrimPrefix(field.path, "policy."))
			ignored = append(ignored, field.path)
		}
	}
	for i, drop := range policy.GetDropOverloads() {
		if rate := dropRate(drop); rate > lbconfig.Million {
			notes.Add(fmt.Sprintf("policy.drop_overloads[%d].drop_percentage", i),
				"category %q drops %v %%, which counts as 100 %%", drop.GetCategory(), float64(rate)/(lbconfig.Million/100))
		}
	}
	var violations Invalid
	if err := cluster.ValidateAll(); err != nil {
		violations.addViolations(err, "", cluster.ProtoReflect().Descriptor())
	}
	for _, v := range violations.Problems {
		if !slices.ContainsFunc(ignored, func(path string) bool { return strings.HasPrefix(v.Path, path) }) {
			notes.Add(v.Path, "%s", v.Text)
		}
	}
}

func whyEmpty(cluster *endpointv3.ClusterLoadAssignment) string {
	if n := len(cluster.GetEndpoints()); n > 0 {
		return fmt.Sprintf("cluster %q has no locality with a weight (%d in total)", cluster.GetClusterName(), n)
	}
	return fmt.Sprintf("cluster %q has no localities", cluster.GetClusterName())
}

func noteUnused(locality *endpointv3.LocalityLbEndpoints, path string, notes *Invalid) {
	if locality.GetLbConfig() != nil {
		notes.Add(path, "load_balancer_endpoints and leds_cluster_locality_config have no effect, want lb_endpoints")
	}
	for j, lb := range locality.GetLbEndpoints() {
		if !Healthy(lb) {
			continue
		}
		socket := lb.GetEndpoint().GetAddress().GetSocketAddress()
		if p := socket.GetProtocol(); p != corev3.SocketAddress_TCP {
			notes.Add(fmt.Sprintf("%s.lb_endpoints[%d].endpoint.address.socket_address.protocol", path, j), "protocol %v has no effect, TCP is used", p)
		}
	}
}
