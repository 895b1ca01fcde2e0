// Package adstest has a scriptable management server for tests, and helpers that create resources.
package adstest

import (
	"errors"
	"net"
	"sync/atomic"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

const EndpointsURL = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment"

type Script func(*Stream) error

type Server struct {
	discoveryv3.UnimplementedAggregatedDiscoveryServiceServer
	script  Script
	grpc    *grpc.Server
	streams atomic.Int64
}

func Serve(listener net.Listener, script Script, opts ...grpc.ServerOption) *Server {
	s := &Server{script: script, grpc: grpc.NewServer(opts...)}
	discoveryv3.RegisterAggregatedDiscoveryServiceServer(s.grpc, s)
	go func() { _ = s.grpc.Serve(listener) }()
	return s
}

func (s *Server) Stop() { s.grpc.Stop() }

func (s *Server) Streams() int { return int(s.streams.Load()) }

func (s *Server) StreamAggregatedResources(stream discoveryv3.AggregatedDiscoveryService_StreamAggregatedResourcesServer) error {
	return s.script(&Stream{AggregatedDiscoveryService_StreamAggregatedResourcesServer: stream, Number: int(s.streams.Add(1))})
}

type Stream struct {
	discoveryv3.AggregatedDiscoveryService_StreamAggregatedResourcesServer
	Number int

	requested bool
	first     *discoveryv3.DiscoveryRequest // set by Respond if it had to wait for a request; cleared when Recv returns it
}

func (s *Stream) Recv() (*discoveryv3.DiscoveryRequest, error) {
	if r := s.first; r != nil {
		s.first = nil
		return r, nil
	}
	s.requested = true
	return s.AggregatedDiscoveryService_StreamAggregatedResourcesServer.Recv()
}

// Respond sends clusters in a response. If there hasn't been a request on this stream yet, it waits
// for one, and the next Recv returns it.
func (s *Stream) Respond(version, nonce string, clusters ...*endpointv3.ClusterLoadAssignment) error {
	if !s.requested {
		var err error
		if s.first, err = s.Recv(); err != nil {
			return err
		}
	}
	r := &discoveryv3.DiscoveryResponse{TypeUrl: EndpointsURL, VersionInfo: version, Nonce: nonce}
	for _, c := range clusters {
		r.Resources = append(r.Resources, Any(c))
	}
	return s.Send(r)
}

func (s *Stream) Drain() error {
	for {
		if _, err := s.Recv(); err != nil {
			return err
		}
	}
}

func Any(m proto.Message) *anypb.Any {
	packed, err := anypb.New(m)
	if err != nil {
		panic(err)
	}
	return packed
}

// Cluster returns a cluster with a single locality of priority 0 and weight 1. Addresses are
// written as IP:port and have the default weight of 1.
func Cluster(name string, addresses ...string) *endpointv3.ClusterLoadAssignment {
	locality := &endpointv3.LocalityLbEndpoints{
		Locality:            &corev3.Locality{Region: "region", Zone: "zone"},
		LoadBalancingWeight: wrapperspb.UInt32(1),
	}
	for _, address := range addresses {
		locality.LbEndpoints = append(locality.LbEndpoints, endpoint(address))
	}
	return &endpointv3.ClusterLoadAssignment{ClusterName: name, Endpoints: []*endpointv3.LocalityLbEndpoints{locality}}
}

func endpoint(address string) *endpointv3.LbEndpoint {
	tcp, err := net.ResolveTCPAddr("tcp", address)
	if err != nil {
		panic(errors.Join(errors.New("adstest: want IP:port"), err))
	}
	return &endpointv3.LbEndpoint{
		HostIdentifier: &endpointv3.LbEndpoint_Endpoint{Endpoint: &endpointv3.Endpoint{
			Address: SocketAddress(tcp.IP.String(), uint32(tcp.Port)),
		}},
	}
}

func SocketAddress(host string, port uint32) *corev3.Address {
	return &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
		Address: host, PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: port},
	}}}
}
