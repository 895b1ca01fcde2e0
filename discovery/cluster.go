package discovery

import (
	"cmp"
	"math"
	"net"
	"slices"
	"strconv"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// Endpoint is an endpoint as most registries know it.
type Endpoint struct {
	// Address is host:port, or unix:/path.
	Address string
	// Weight is the endpoint's share of the calls, relative to all endpoints of its
	// priority. 0 counts as 1.
	Weight uint32
	// Priority is 0 for the endpoints that are used first, 1 for those that are used
	// when no endpoint of 0 can be, and so on, without gaps.
	Priority uint32
	// Locality is region/zone/sub_zone, as far as they are known, such as "us-east/a".
	Locality string
}

// Cluster returns endpoints as a cluster for an Answer. A locality's weight is the sum
// of its endpoints' weights. Receiver.Update finds mistakes.
func Cluster(endpoints ...Endpoint) *endpointv3.ClusterLoadAssignment {
	cluster := &endpointv3.ClusterLoadAssignment{ClusterName: "cluster"}
	groups := slices.Clone(endpoints)
	slices.SortStableFunc(groups, func(a, b Endpoint) int {
		return cmp.Or(cmp.Compare(a.Priority, b.Priority), cmp.Compare(a.Locality, b.Locality))
	})
	var locality *endpointv3.LocalityLbEndpoints
	for i, e := range groups {
		if i == 0 || e.Priority != groups[i-1].Priority || e.Locality != groups[i-1].Locality {
			parts := append(strings.SplitN(e.Locality, "/", 3), "", "")
			locality = &endpointv3.LocalityLbEndpoints{
				Locality:            &corev3.Locality{Region: parts[0], Zone: parts[1], SubZone: parts[2]},
				Priority:            e.Priority,
				LoadBalancingWeight: wrapperspb.UInt32(0),
			}
			cluster.Endpoints = append(cluster.Endpoints, locality)
		}
		weight := max(e.Weight, 1)
		total := uint64(locality.GetLoadBalancingWeight().GetValue()) + uint64(weight)
		locality.LoadBalancingWeight.Value = uint32(min(total, math.MaxUint32))
		locality.LbEndpoints = append(locality.LbEndpoints, &endpointv3.LbEndpoint{
			HostIdentifier:      &endpointv3.LbEndpoint_Endpoint{Endpoint: &endpointv3.Endpoint{Address: addressOf(e.Address)}},
			LoadBalancingWeight: wrapperspb.UInt32(weight),
		})
	}
	return cluster
}

// addressOf returns an address in Envoy's form. It keeps mistakes, for Receiver.Update
// to find.
func addressOf(address string) *corev3.Address {
	if path, ok := strings.CutPrefix(address, "unix:"); ok {
		return &corev3.Address{Address: &corev3.Address_Pipe{Pipe: &corev3.Pipe{Path: path}}}
	}
	socket := &corev3.SocketAddress{Address: address}
	if host, port, err := net.SplitHostPort(address); err == nil {
		socket.Address = host
		if n, err := strconv.ParseUint(port, 10, 16); err == nil {
			socket.PortSpecifier = &corev3.SocketAddress_PortValue{PortValue: uint32(n)}
		}
	}
	return &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: socket}}
}
