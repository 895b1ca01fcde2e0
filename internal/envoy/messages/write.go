package messages

import (
	"fmt"
	"net"
	"strings"
	"unicode/utf8"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/channel/topology"
)

// Write converts answers to a cluster. It's the inverse of Read. The priorities of all answers are
// concatenated, but we only use the first answer's drops, because in a cluster they'd apply to
// every priority. A cluster can't have the same address twice, so we only keep the first one, with
// notes about the rest.
//
// It's an error if a channel would dial some address that can't be in a cluster. We can't just drop
// it, or the cluster's clients might end up with a different priority than the channel.
func Write(name string, answers ...*topology.Checked) (cluster *endpointv3.ClusterLoadAssignment, notes []string, err error) {
	cluster = &endpointv3.ClusterLoadAssignment{ClusterName: name}
	w := writer{written: make(map[string]bool)}
	priority := uint32(0)
	for i, a := range answers {
		if i == 0 && len(a.Drops) > 0 {
			cluster.Policy = new(endpointv3.ClusterLoadAssignment_Policy)
			for _, d := range a.Drops {
				cluster.Policy.DropOverloads = append(cluster.Policy.DropOverloads, &endpointv3.ClusterLoadAssignment_Policy_DropOverload{
					Category:       d.Category,
					DropPercentage: &typev3.FractionalPercent{Numerator: d.PerMillion, Denominator: typev3.FractionalPercent_MILLION},
				})
			}
		}
		for _, p := range a.Normalized() {
			if len(p.Localities) == 0 { // priorities must not have gaps
				p.Localities = []discovery.Locality{{Weight: 1}}
			}
			for _, l := range p.Localities {
				written := &endpointv3.LocalityLbEndpoints{
					Locality:            &corev3.Locality{Region: l.Region, Zone: l.Zone, SubZone: l.SubZone},
					LoadBalancingWeight: wrapperspb.UInt32(l.Weight),
					Priority:            priority,
				}
				if written.LbEndpoints, err = w.endpoints(l.Endpoints); err != nil {
					return nil, nil, err
				}
				cluster.Endpoints = append(cluster.Endpoints, written)
			}
			priority++
		}
	}
	return cluster, w.notes.texts(), nil
}

type writer struct {
	written map[string]bool // keyed by address
	notes   Invalid
}

// endpoints skips an endpoint if its first address has already been written. It also skips those
// that are invalid but can't take calls, because no channel would dial them either.
func (w *writer) endpoints(list []discovery.Endpoint) (all []*endpointv3.LbEndpoint, err error) {
	for i := range list {
		e := &list[i]
		addresses, err := w.addresses(e)
		if err != nil {
			return nil, err
		}
		if len(addresses) == 0 {
			continue
		}
		lb := &endpointv3.LbEndpoint{
			HostIdentifier: &endpointv3.LbEndpoint_Endpoint{Endpoint: &endpointv3.Endpoint{
				Hostname: e.Hostname, Address: addresses[0].GetAddress(), AdditionalAddresses: addresses[1:],
			}},
			HealthStatus: statuses[e.Health],
			Metadata:     writeHints(e),
		}
		if e.Weight > 0 {
			lb.LoadBalancingWeight = wrapperspb.UInt32(e.Weight)
		}
		all = append(all, lb)
	}
	return all, nil
}

func (w *writer) addresses(e *discovery.Endpoint) (all []*endpointv3.Endpoint_AdditionalAddress, err error) {
	for i, given := range e.Addresses {
		address, target, problem := parseTarget(given)
		switch {
		case problem != "" && (e.Health == discovery.Unknown || e.Health == discovery.Healthy):
			return nil, fmt.Errorf("address %.100q cannot be written: %s", given, problem)
		case problem == "" && !w.written[target]:
			w.written[target] = true
			all = append(all, &endpointv3.Endpoint_AdditionalAddress{Address: address})
			continue
		case problem == "":
			w.notes.Add("", "address %s occurs again and is left out there", target)
		}
		if i == 0 {
			return nil, nil
		}
	}
	return all, nil
}

var statuses = map[discovery.Health]corev3.HealthStatus{
	discovery.Unknown:   corev3.HealthStatus_UNKNOWN,
	discovery.Healthy:   corev3.HealthStatus_HEALTHY,
	discovery.Draining:  corev3.HealthStatus_DRAINING,
	discovery.Unhealthy: corev3.HealthStatus_UNHEALTHY,
}

// parseTarget is the inverse of Dial. A named port is looked up on this machine, which is what gRPC
// does when dialing. If there's a problem, canonical is "".
func parseTarget(target string) (address *corev3.Address, canonical, problem string) {
	path, isPath := strings.CutPrefix(target, "unix:")
	host, port, err := net.SplitHostPort(target)
	switch {
	case isPath && !utf8.ValidString(path):
		return nil, "", "its path is not valid UTF-8"
	case isPath:
		address = &corev3.Address{Address: &corev3.Address_Pipe{Pipe: &corev3.Pipe{Path: path}}}
	case err != nil:
		return nil, "", "want host:port, or unix:/path"
	default:
		n, err := net.LookupPort("tcp", port)
		if err != nil {
			return nil, "", "its port is unknown on this machine"
		}
		address = &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
			Address: host, PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: uint32(n)},
		}}}
	}
	canonical, invalid := Dial(address)
	if canonical == "" {
		problem = invalid.Problems[0].Text
	}
	return address, canonical, problem
}

func writeHints(e *discovery.Endpoint) *corev3.Metadata {
	if len(e.ForZones)+len(e.ForNodes) == 0 {
		return nil
	}
	hints := &structpb.Struct{Fields: map[string]*structpb.Value{"forZones": writeNames(e.ForZones), "forNodes": writeNames(e.ForNodes)}}
	return &corev3.Metadata{FilterMetadata: map[string]*structpb.Struct{hintsKey: hints}}
}

func writeNames(names []string) *structpb.Value {
	list := new(structpb.ListValue)
	for _, name := range names[:min(len(names), maxHints)] {
		list.Values = append(list.Values, structpb.NewStringValue(name))
	}
	return structpb.NewListValue(list)
}
