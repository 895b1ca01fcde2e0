package adsclient

import (
	"fmt"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

type Type struct {
	url   string
	noun  string
	field string // name of the field with the resource's name
	empty proto.Message
}

// The following types are supported: *clusterv3.Cluster and *endpointv3.ClusterLoadAssignment.
var (
	Clusters = &Type{
		url:   "type.googleapis.com/envoy.config.cluster.v3.Cluster",
		noun:  "cluster",
		field: "name",
		empty: new(clusterv3.Cluster),
	}
	Endpoints = &Type{
		url:   "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment",
		noun:  "endpoints of cluster",
		field: "cluster_name",
		empty: new(endpointv3.ClusterLoadAssignment),
	}
)

var types = []*Type{Clusters, Endpoints}

func (t *Type) unmarshal(body []byte) (proto.Message, error) {
	m := t.empty.ProtoReflect().New().Interface()
	if err := proto.Unmarshal(body, m); err != nil {
		return nil, fmt.Errorf("not a %s: %w", m.ProtoReflect().Descriptor().Name(), err)
	}
	return m, nil
}

func (t *Type) nameOf(m proto.Message) string {
	r := m.ProtoReflect()
	return r.Get(r.Descriptor().Fields().ByName(protoreflect.Name(t.field))).String()
}
