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
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/channel/topology"
	"github.com/understudy-lb/understudy/internal/config/lbconfig"
	whereabouts "github.com/understudy-lb/understudy/internal/net/location"
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

// Addresses returns the addresses of an endpoint in the form that gRPC dials. The main address
// comes first.
func Addresses(lb *endpointv3.LbEndpoint) []string {
	var targets []string
	for _, address := range addressesOf(lb) {
		if target, _ := Dial(address); target != "" {
			targets = append(targets, target)
		}
	}
	return targets
}

// Healthy reports whether an endpoint may receive calls, because its health is UNKNOWN or HEALTHY
// (gRFC A27).
func Healthy(lb *endpointv3.LbEndpoint) bool {
	return lb.GetHealthStatus() == corev3.HealthStatus_UNKNOWN || lb.GetHealthStatus() == corev3.HealthStatus_HEALTHY
}

// Drops returns the drops of a cluster, in the order in which they apply.
func Drops(cluster *endpointv3.ClusterLoadAssignment) []discovery.Drop {
	var drops []discovery.Drop
	for _, drop := range cluster.GetPolicy().GetDropOverloads() {
		drops = append(drops, discovery.Drop{Category: drop.GetCategory(), PerMillion: uint32(min(dropRate(drop), lbconfig.Million))})
	}
	return drops
}

// dropRate returns the number of calls in a million to drop. It may exceed a million.
func dropRate(drop *endpointv3.ClusterLoadAssignment_Policy_DropOverload) uint64 {
	return uint64(drop.GetDropPercentage().GetNumerator()) * perMillion[drop.GetDropPercentage().GetDenominator()]
}

var perMillion = map[typev3.FractionalPercent_DenominatorType]uint64{
	typev3.FractionalPercent_HUNDRED:      lbconfig.Million / 100,
	typev3.FractionalPercent_TEN_THOUSAND: lbconfig.Million / 10_000,
	typev3.FractionalPercent_MILLION:      1,
}

// LocalityName returns the name of a locality, which may be nil.
func LocalityName(l *corev3.Locality) string {
	return topology.LocalityName(l.GetRegion(), l.GetZone(), l.GetSubZone())
}

func addressesOf(lb *endpointv3.LbEndpoint) []*corev3.Address {
	addresses := []*corev3.Address{lb.GetEndpoint().GetAddress()}
	for _, additional := range lb.GetEndpoint().GetAdditionalAddresses() {
		addresses = append(addresses, additional.GetAddress())
	}
	return addresses
}

// Weight returns the weight of an endpoint. The default is 1 (gRFC A34, "Notes").
func Weight(lb *endpointv3.LbEndpoint) uint32 {
	if w := lb.GetLoadBalancingWeight(); w != nil {
		return w.GetValue()
	}
	return 1
}

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
