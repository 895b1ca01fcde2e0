package envoy

import (
	"iter"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"

	"github.com/understudy-lb/understudy/internal/lbconfig"
	"github.com/understudy-lb/understudy/internal/topology"
)

// Locality is one locality of a cluster.
type Locality struct {
	// Name is that of topology.LocalityName.
	Name string
	// Priority counts from 0, the highest.
	Priority uint32
	// Weight is the weight of the locality in its priority. A locality of weight 0 gets
	// no traffic.
	Weight uint32

	from      *corev3.Locality
	endpoints []*endpointv3.LbEndpoint
}

// Localities returns all localities of a valid cluster in the order given, also those
// without traffic.
func Localities(cluster *endpointv3.ClusterLoadAssignment) iter.Seq[Locality] {
	return func(yield func(Locality) bool) {
		for _, l := range cluster.GetEndpoints() {
			locality := Locality{
				Name:      localityName(l.GetLocality()),
				Priority:  l.GetPriority(),
				Weight:    l.GetLoadBalancingWeight().GetValue(),
				from:      l.GetLocality(),
				endpoints: l.GetLbEndpoints(),
			}
			if !yield(locality) {
				return
			}
		}
	}
}

// Endpoints returns all endpoints of the locality in the order given, also those that
// are not healthy.
func (l Locality) Endpoints() iter.Seq[Endpoint] {
	return func(yield func(Endpoint) bool) {
		for _, lb := range l.endpoints {
			if !yield(Endpoint{lb}) {
				return
			}
		}
	}
}

// Endpoint is one endpoint of a cluster.
type Endpoint struct{ lb *endpointv3.LbEndpoint }

// Addresses returns all addresses of the endpoint in the form that gRPC dials, such as
// "192.0.2.1:443", the main one first. An endpoint that gets no traffic may have none.
func (e Endpoint) Addresses() []string {
	var dials []string
	for _, address := range addressesOf(e.lb) {
		if dial, _ := dialable(address); dial != "" {
			dials = append(dials, dial)
		}
	}
	return dials
}

// Weight returns the weight of the endpoint, 1 where none is given (gRFC A34,
// "Notes").
func (e Endpoint) Weight() uint32 { return weightOf(e.lb) }

// Health returns what the cluster says of the endpoint's health.
func (e Endpoint) Health() corev3.HealthStatus { return e.lb.GetHealthStatus() }

// Healthy returns whether the endpoint may get traffic: its health is UNKNOWN or
// HEALTHY (gRFC A27).
func (e Endpoint) Healthy() bool {
	return e.Health() == corev3.HealthStatus_UNKNOWN || e.Health() == corev3.HealthStatus_HEALTHY
}

// Drop is a share of the calls that a cluster makes its clients drop.
type Drop struct {
	Category string
	// RequestsPerMillion is at most 1,000,000.
	RequestsPerMillion uint32
}

// Drops returns the drops of a cluster in the order in which they apply. Each takes its
// share of the calls that those before it left.
func Drops(cluster *endpointv3.ClusterLoadAssignment) []Drop {
	var drops []Drop
	for _, drop := range cluster.GetPolicy().GetDropOverloads() {
		drops = append(drops, Drop{drop.GetCategory(), uint32(min(dropRate(drop), lbconfig.Million))})
	}
	return drops
}

// dropRate returns how many of a million requests drop asks for. It may be more than a
// million.
func dropRate(drop *endpointv3.ClusterLoadAssignment_Policy_DropOverload) uint64 {
	percentage := drop.GetDropPercentage()
	rate := uint64(percentage.GetNumerator())
	switch percentage.GetDenominator() {
	case typev3.FractionalPercent_HUNDRED:
		rate *= lbconfig.Million / 100
	case typev3.FractionalPercent_TEN_THOUSAND:
		rate *= lbconfig.Million / 10_000
	case typev3.FractionalPercent_MILLION:
	}
	return rate
}

// localityName returns the name of a locality, nil included.
func localityName(l *corev3.Locality) string {
	return topology.LocalityName(l.GetRegion(), l.GetZone(), l.GetSubZone())
}

// addressesOf returns all addresses of an endpoint, the main one first.
func addressesOf(lb *endpointv3.LbEndpoint) []*corev3.Address {
	addresses := []*corev3.Address{lb.GetEndpoint().GetAddress()}
	for _, additional := range lb.GetEndpoint().GetAdditionalAddresses() {
		addresses = append(addresses, additional.GetAddress())
	}
	return addresses
}

// weightOf returns the weight of an endpoint, 1 where none is given (gRFC A34).
func weightOf(lb *endpointv3.LbEndpoint) uint32 {
	if w := lb.GetLoadBalancingWeight(); w != nil {
		return w.GetValue()
	}
	return 1
}
