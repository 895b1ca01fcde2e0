package messages

import (
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/channel/topology"
	"github.com/understudy-lb/understudy/internal/config/lbconfig"
)

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
