package cds

import (
	"math"
	"net"
	"slices"
	"strconv"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/understudy-lb/understudy/internal/feed"
	"github.com/understudy-lb/understudy/topology"
)

// resolved returns the cluster with addresses in place of names, and whether there is one.
// An address that two names have counts for the first. Additional addresses beside a name
// belong to the first of its addresses.
func (s *strict) resolved(names feed.Names) (*endpointv3.ClusterLoadAssignment, bool) {
	cluster := proto.CloneOf(s.from)
	taken, some := s.addresses(), false
	for _, locality := range cluster.GetEndpoints() {
		var list []*endpointv3.LbEndpoint
		for _, e := range locality.GetLbEndpoints() {
			host := hostOf(e)
			if host == "" {
				list, some = append(list, e), true
				continue
			}
			for _, a := range names[host].Addresses {
				if address := addressOf(a); address != nil && taken.take(address) {
					list, some = append(list, at(e, address, taken)), true
				}
			}
		}
		locality.LbEndpoints = fit(list)
	}
	return cluster, some
}

// addresses are those that are in a cluster already, in the form that gRPC dials.
type addresses map[string]bool

// take returns whether address can be dialled and is not there yet, and adds it.
func (t addresses) take(address *corev3.Address) bool {
	dial := topology.Dial(address)
	if dial == "" || t[dial] {
		return false
	}
	t[dial] = true
	return true
}

// addresses returns those of the endpoints that are no names.
func (s *strict) addresses() addresses {
	taken := make(addresses)
	for _, locality := range s.from.GetEndpoints() {
		for _, e := range locality.GetLbEndpoints() {
			if hostOf(e) != "" {
				continue
			}
			taken.take(e.GetEndpoint().GetAddress())
			for _, more := range e.GetEndpoint().GetAdditionalAddresses() {
				taken.take(more.GetAddress())
			}
		}
	}
	return taken
}

// addressOf returns an address in Envoy's form, nil for one that is none.
func addressOf(address string) *corev3.Address {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return nil
	}
	socket := &corev3.SocketAddress{Address: host, PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: uint32(n)}}
	return &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: socket}}
}

// at returns an endpoint with another address, and those of its additional ones that are
// not taken.
func at(e *endpointv3.LbEndpoint, address *corev3.Address, taken addresses) *endpointv3.LbEndpoint {
	e = proto.CloneOf(e)
	e.GetEndpoint().Address = address
	e.GetEndpoint().AdditionalAddresses = slices.DeleteFunc(e.GetEndpoint().GetAdditionalAddresses(), func(more *endpointv3.Endpoint_AdditionalAddress) bool {
		return !taken.take(more.GetAddress())
	})
	return e
}

// fit returns the endpoints of a locality, whose weights are made smaller in proportion where
// their sum is more than a locality may have: each address of a name has the name's weight.
func fit(list []*endpointv3.LbEndpoint) []*endpointv3.LbEndpoint {
	var sum uint64
	for _, e := range list {
		sum += uint64(weightOf(e))
	}
	if sum <= math.MaxUint32 {
		return list
	}
	by := sum/(math.MaxUint32-uint64(len(list))) + 1 // none becomes 0
	for i, e := range list {
		e = proto.CloneOf(e)
		e.LoadBalancingWeight = wrapperspb.UInt32(uint32(max(uint64(weightOf(e))/by, 1)))
		list[i] = e
	}
	return list
}

// weightOf returns the weight of an endpoint, 1 where it has none.
func weightOf(e *endpointv3.LbEndpoint) uint32 {
	if w := e.GetLoadBalancingWeight(); w != nil {
		return w.GetValue()
	}
	return 1
}
