// Package envoy reads Envoy's messages, as gRPC does: a ClusterLoadAssignment becomes an
// Answer (gRFC A27), the outlier_detection of a Cluster the settings of a policy (A50). What
// gRPC rejects is an error, and what has no effect a note, each with its place in the message.
//
// The sources of endpoints that speak Envoy's language import it, and nothing else of the
// library does: a client without them does not link Envoy's messages.
package envoy

import (
	"crypto/sha256"
	"fmt"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/proto"

	"github.com/understudy-lb/understudy/discovery"
)

// Read returns a cluster as an answer, which is meant where it holds no endpoint, and notes on
// what has no effect: a locality without a weight, and what breaks the rules in Envoy's .proto
// files but not gRPC's. The cluster is not modified.
//
// Its error is an *Invalid if gRPC's rules (gRFC A27 and what its clients agree on) are broken:
// an endpoint's weight of 0; weights of a priority's localities, or of a locality's endpoints,
// that sum past 4,294,967,295; an address twice in a cluster; a locality that is missing, or
// twice in a priority; a gap in the priorities; a healthy endpoint without an address that gRPC
// can dial; a drop of an unknown denominator; a cluster without a name. Nothing in a locality
// that gets no traffic breaks a rule.
func Read(cluster *endpointv3.ClusterLoadAssignment) (discovery.Answer, []Problem, error) {
	if err := Validate(cluster); err != nil {
		return discovery.Answer{}, nil, err
	}
	var notes Invalid
	note(cluster, &notes)
	a := discovery.Answer{Service: cluster.GetClusterName(), Identity: identityOf(cluster), Empty: true}
	for _, locality := range cluster.GetEndpoints() {
		if !hasTraffic(locality) {
			continue
		}
		for int(locality.GetPriority()) >= len(a.Priorities) {
			a.Priorities = append(a.Priorities, discovery.Priority{})
		}
		p := &a.Priorities[locality.GetPriority()]
		p.Localities = append(p.Localities, read(locality))
	}
	if len(a.Priorities) == 0 {
		a.Why = whyEmpty(cluster)
	}
	a.Drops = Drops(cluster)
	return a, notes.Problems, nil
}

// identityOf returns what stands for the content of a cluster, "" for one that cannot be
// encoded, such as one with text that is not UTF-8.
func identityOf(cluster *endpointv3.ClusterLoadAssignment) string {
	encoded, err := proto.MarshalOptions{Deterministic: true}.Marshal(cluster)
	if err != nil {
		return ""
	}
	return fmt.Sprintf("%x", sha256.Sum256(encoded))
}

// read returns the locality as that of an answer.
func read(l *endpointv3.LocalityLbEndpoints) discovery.Locality {
	read := discovery.Locality{
		Region:    l.GetLocality().GetRegion(),
		Zone:      l.GetLocality().GetZone(),
		SubZone:   l.GetLocality().GetSubZone(),
		Weight:    l.GetLoadBalancingWeight().GetValue(),
		Endpoints: make([]discovery.Endpoint, len(l.GetLbEndpoints())),
	}
	for i, lb := range l.GetLbEndpoints() {
		e := &read.Endpoints[i]
		*e = discovery.Endpoint{Addresses: Addresses(lb), Weight: Weight(lb), Health: health(lb.GetHealthStatus()), Hostname: lb.GetEndpoint().GetHostname()}
		hint(lb, e)
	}
	return read
}

func health(given corev3.HealthStatus) discovery.Health {
	switch given {
	case corev3.HealthStatus_UNKNOWN:
		return discovery.Unknown
	case corev3.HealthStatus_HEALTHY:
		return discovery.Healthy
	case corev3.HealthStatus_DRAINING:
		return discovery.Draining
	default:
		return discovery.Unhealthy
	}
}

// Texts returns notes in a line each, in the words of explain where it is not nil: it puts what
// is wrong into those of whoever wrote the message, such as with the lines of a file.
func Texts(notes []Problem, explain func(*Invalid) error) (texts []string) {
	for _, n := range notes {
		invalid := &Invalid{Problems: []Problem{n}}
		if explain != nil {
			texts = append(texts, explain(invalid).Error())
		} else {
			texts = append(texts, invalid.Error())
		}
	}
	return texts
}
