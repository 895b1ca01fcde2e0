package srv

import (
	"fmt"
	"net/netip"
	"slices"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/understudy-lb/understudy/internal/linger"
)

// table holds what is known of the records and addresses of a service.
type table struct {
	removeAfter int
	records     linger.Set[recordKey, record]
	addresses   map[string]*linger.Set[netip.Addr, netip.Addr] // by host
}

// recordKey tells a record from others: it may change its priority and weight.
type recordKey struct {
	host string
	port uint16
}

// take takes an answer, and returns the endpoints that there are now.
func (t *table) take(name string, a answer) *endpointv3.ClusterLoadAssignment {
	before := t.addresses
	t.addresses = make(map[string]*linger.Set[netip.Addr, netip.Addr])
	records := t.records.Next(t.removeAfter, a.records, func(r record) recordKey { return recordKey{r.host, r.port} })
	for _, r := range records {
		if t.addresses[r.host] != nil {
			continue
		}
		known := before[r.host]
		if known == nil {
			known = &linger.Set[netip.Addr, netip.Addr]{}
		}
		if found, ok := a.addresses[r.host]; ok {
			known.Next(t.removeAfter, found, netip.Addr.Unmap)
		}
		t.addresses[r.host] = known
	}
	slices.SortStableFunc(records, func(a, b record) int { return int(a.priority) - int(b.priority) })
	return t.cluster(name, records)
}

// cluster returns the endpoints of records, which are in the order of their priorities.
// Each priority has a locality of its own name, by which its connections are known when
// those above it come or go.
func (t *table) cluster(name string, records []record) *endpointv3.ClusterLoadAssignment {
	cluster := &endpointv3.ClusterLoadAssignment{ClusterName: name}
	taken := make(map[netip.AddrPort]bool)
	for first := 0; first < len(records); {
		priority := records[first].priority
		end := first
		for end < len(records) && records[end].priority == priority {
			end++
		}
		locality := &endpointv3.LocalityLbEndpoints{
			Locality:            &corev3.Locality{Region: fmt.Sprintf("SRV priority %d", priority)},
			Priority:            uint32(len(cluster.GetEndpoints())),
			LoadBalancingWeight: wrapperspb.UInt32(1),
			LbEndpoints:         t.endpoints(records[first:end], taken),
		}
		if len(locality.GetLbEndpoints()) > 0 {
			cluster.Endpoints = append(cluster.Endpoints, locality)
		}
		first = end
	}
	return cluster
}

// endpoints returns the endpoints of the records of one priority. It leaves out addresses
// that are taken, and takes those that it returns.
func (t *table) endpoints(records []record, taken map[netip.AddrPort]bool) []*endpointv3.LbEndpoint {
	var endpoints []*endpointv3.LbEndpoint
	weights := weightsOf(records)
	for i, r := range records {
		e := &endpointv3.Endpoint{Hostname: r.name()}
		for _, ip := range t.addresses[r.host].Values() {
			at := netip.AddrPortFrom(ip.Unmap(), r.port)
			switch {
			case taken[at]:
				continue
			case e.GetAddress() == nil:
				e.Address = socket(at)
			default:
				e.AdditionalAddresses = append(e.AdditionalAddresses, &endpointv3.Endpoint_AdditionalAddress{Address: socket(at)})
			}
			taken[at] = true
		}
		if e.GetAddress() != nil {
			endpoints = append(endpoints, &endpointv3.LbEndpoint{
				HostIdentifier:      &endpointv3.LbEndpoint_Endpoint{Endpoint: e},
				LoadBalancingWeight: wrapperspb.UInt32(weights[i]),
			})
		}
	}
	return endpoints
}

// weightsOf returns the weights of records of one priority. A record of weight 0 gets the
// least share, not none.
//
//	3 1    ->  3 1
//	3 1 0  ->  30 10 1
//	0 0    ->  1 1
func weightsOf(records []record) []uint32 {
	const tenth = 10
	zero := func(r record) bool { return r.weight == 0 }
	factor := uint32(1)
	if slices.ContainsFunc(records, zero) {
		factor = tenth
	}
	weights := make([]uint32, len(records))
	for i, r := range records {
		weights[i] = max(uint32(r.weight)*factor, 1)
	}
	return weights
}

func socket(at netip.AddrPort) *corev3.Address {
	return &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
		Address:       at.Addr().String(),
		PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: uint32(at.Port())},
	}}}
}
