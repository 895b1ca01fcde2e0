// Package messages reads Envoy's messages as gRPC does. It reads a ClusterLoadAssignment as an Answer
// (gRFC A27), and the outlier_detection of a Cluster as the configuration of a policy (gRFC A50).
// Messages that gRPC rejects cause errors, and ignored fields cause notes.
//
// Only the sources that read Envoy's formats import this package, so that other clients do not link
// Envoy's protos.
package messages

import (
	"crypto/sha256"
	"fmt"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/proto"

	"github.com/understudy-lb/understudy/discovery"
)

// Read converts a cluster to an answer. A cluster may have no endpoints: then the answer is marked
// as intentionally empty. The notes, which the answer has as texts, describe ignored fields, and violations of Envoy's rules that
// gRPC accepts.
//
// The error is an *Invalid if the cluster violates gRPC's rules (gRFC A27 and the behavior of other
// gRPC clients): an endpoint with weight 0; weights of a priority's localities, or of a locality's
// endpoints, that sum to more than 4,294,967,295; a duplicate address; a locality that is missing,
// or duplicate in a priority; a gap in the priorities; a healthy endpoint without an address that
// gRPC can dial; a drop with an unknown denominator; or a cluster without a name. Localities
// without traffic are not checked.
func Read(cluster *endpointv3.ClusterLoadAssignment) (discovery.Answer, []Problem, error) {
	if err := Validate(cluster); err != nil {
		return discovery.Answer{}, nil, err
	}
	var notes Invalid
	addNotes(cluster, &notes)
	a := discovery.Answer{Notes: Texts(notes.Problems), Service: cluster.GetClusterName(), Identity: identityOf(cluster), Empty: true}
	for _, locality := range cluster.GetEndpoints() {
		if !hasTraffic(locality) {
			continue
		}
		for int(locality.GetPriority()) >= len(a.Priorities) {
			a.Priorities = append(a.Priorities, discovery.Priority{})
		}
		p := &a.Priorities[locality.GetPriority()]
		p.Localities = append(p.Localities, readLocality(locality))
	}
	if len(a.Priorities) == 0 {
		a.Why = whyEmpty(cluster)
	}
	a.Drops = Drops(cluster)
	return a, notes.Problems, nil
}

// identityOf returns a hash of a cluster, or "" if the cluster cannot be encoded.
func identityOf(cluster *endpointv3.ClusterLoadAssignment) string {
	encoded, err := proto.MarshalOptions{Deterministic: true}.Marshal(cluster)
	if err != nil {
		return ""
	}
	return fmt.Sprintf("%x", sha256.Sum256(encoded))
}

func readLocality(l *endpointv3.LocalityLbEndpoints) discovery.Locality {
	locality := discovery.Locality{
		Region:    l.GetLocality().GetRegion(),
		Zone:      l.GetLocality().GetZone(),
		SubZone:   l.GetLocality().GetSubZone(),
		Weight:    l.GetLoadBalancingWeight().GetValue(),
		Endpoints: make([]discovery.Endpoint, len(l.GetLbEndpoints())),
	}
	for i, lb := range l.GetLbEndpoints() {
		e := &locality.Endpoints[i]
		*e = discovery.Endpoint{Addresses: Addresses(lb), Weight: Weight(lb), Health: health(lb.GetHealthStatus()), Hostname: lb.GetEndpoint().GetHostname()}
		readHints(lb, e)
	}
	return locality
}

func health(status corev3.HealthStatus) discovery.Health {
	for health, written := range statuses {
		if written == status {
			return health
		}
	}
	return discovery.Unhealthy
}
