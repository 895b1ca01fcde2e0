package adsclient

import (
	"fmt"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/proto"
)

// Type is a resource type.
type Type struct {
	url    string
	noun   string // name of the resource type in errors
	field  string
	create func() proto.Message
	nameOf func(proto.Message) string
}

// The supported types, for *clusterv3.Cluster and *endpointv3.ClusterLoadAssignment.
var (
	Clusters = &Type{
		url:    "type.googleapis.com/envoy.config.cluster.v3.Cluster",
		noun:   "cluster",
		field:  "name",
		create: func() proto.Message { return new(clusterv3.Cluster) },
		nameOf: func(m proto.Message) string { return m.(*clusterv3.Cluster).GetName() },
	}
	Endpoints = &Type{
		url:    "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment",
		noun:   "endpoints of cluster",
		field:  "cluster_name",
		create: func() proto.Message { return new(endpointv3.ClusterLoadAssignment) },
		nameOf: func(m proto.Message) string { return m.(*endpointv3.ClusterLoadAssignment).GetClusterName() },
	}
)

func (t *Type) unmarshal(body []byte) (proto.Message, error) {
	m := t.create()
	if err := proto.Unmarshal(body, m); err != nil {
		return nil, fmt.Errorf("not a %s: %w", m.ProtoReflect().Descriptor().Name(), err)
	}
	return m, nil
}
