package messages

import (
	"fmt"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"

	"github.com/understudy-lb/understudy/internal/config/lbconfig"
)

func addNotes(cluster *endpointv3.ClusterLoadAssignment, notes *Invalid) {
	var idle []string
	for i, locality := range cluster.GetEndpoints() {
		path := fmt.Sprintf("endpoints[%d]", i)
		if !hasTraffic(locality) {
			noteIdle(locality, path, notes)
			idle = append(idle, path+".")
			continue
		}
		noteUnused(locality, path, notes)
	}
	idle = append(idle, noteIgnored(cluster, notes)...)
	noteDrops(cluster, notes)
	err := cluster.ValidateAll()
	if err == nil {
		return
	}
	var violations Invalid
	violations.addViolations(err, "", cluster.ProtoReflect().Descriptor())
	for _, v := range violations.Problems {
		if !hasAnyPrefix(v.Path, idle) {
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

func hasAnyPrefix(path string, prefixes []string) bool {
	for _, p := range prefixes {
		if strings.HasPrefix(path, p) {
			return true
		}
	}
	return false
}

func noteIdle(locality *endpointv3.LocalityLbEndpoints, path string, notes *Invalid) {
	weight := "no weight"
	if locality.GetLoadBalancingWeight() != nil {
		weight = "weight 0"
	}
	notes.Add(path, "locality %q of priority %d has %s and gets no traffic",
		LocalityName(locality.GetLocality()), locality.GetPriority(), weight)
}

// noteIgnored adds a note for each field that Envoy uses and gRPC ignores (gRFC A27), and returns
// the paths of these fields.
func noteIgnored(cluster *endpointv3.ClusterLoadAssignment, notes *Invalid) (paths []string) {
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
			paths = append(paths, field.path)
		}
	}
	return paths
}

func noteDrops(cluster *endpointv3.ClusterLoadAssignment, notes *Invalid) {
	for i, drop := range cluster.GetPolicy().GetDropOverloads() {
		if rate := dropRate(drop); rate > lbconfig.Million {
			notes.Add(fmt.Sprintf("policy.drop_overloads[%d].drop_percentage", i),
				"category %q drops %v %%, which counts as 100 %%", drop.GetCategory(), float64(rate)/(lbconfig.Million/100))
		}
	}
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
