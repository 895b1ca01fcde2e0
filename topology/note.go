package topology

import (
	"fmt"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
)

// note adds what is worth saying about a cluster in which check found nothing.
func note(cluster *endpointv3.ClusterLoadAssignment, prefix string, notes *problems) {
	var idle []string // the paths of localities, with a dot, in which nothing has an effect
	for i, locality := range cluster.GetEndpoints() {
		path := join(prefix, fmt.Sprintf("endpoints[%d]", i))
		if !hasTraffic(locality) {
			noteIdle(locality, path, notes)
			idle = append(idle, path+".")
			continue
		}
		noteUnused(locality, path, notes)
	}
	err := cluster.ValidateAll()
	if err == nil {
		return
	}
	var violations problems
	violations.addViolations(err, prefix, cluster.ProtoReflect().Descriptor())
	for _, v := range violations.list {
		if !hasAnyPrefix(v.Path, idle) {
			notes.add(v.Path, "%s", v.Text)
		}
	}
}

func hasAnyPrefix(path string, prefixes []string) bool {
	for _, p := range prefixes {
		if strings.HasPrefix(path, p) {
			return true
		}
	}
	return false
}

// noteIdle notes that a locality gets no traffic.
func noteIdle(locality *endpointv3.LocalityLbEndpoints, path string, notes *problems) {
	has := "no weight"
	if locality.GetLoadBalancingWeight() != nil {
		has = "weight 0"
	}
	notes.add(path, "locality %q of priority %d has %s and gets no traffic",
		LocalityName(locality.GetLocality()), locality.GetPriority(), has)
}

// noteUnused notes what somebody will have expected an effect of.
func noteUnused(locality *endpointv3.LocalityLbEndpoints, path string, notes *problems) {
	if locality.GetLbConfig() != nil {
		notes.add(path, "load_balancer_endpoints and leds_cluster_locality_config have no effect, only lb_endpoints has")
	}
	for j, lb := range locality.GetLbEndpoints() {
		if !(Endpoint{lb}).Healthy() {
			continue
		}
		socket := lb.GetEndpoint().GetAddress().GetSocketAddress()
		if p := socket.GetProtocol(); p != corev3.SocketAddress_TCP {
			notes.add(fmt.Sprintf("%s.lb_endpoints[%d].endpoint.address.socket_address.protocol", path, j), "protocol %v has no effect, TCP is used", p)
		}
	}
}
