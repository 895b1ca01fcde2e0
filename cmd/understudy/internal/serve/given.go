package serve

import (
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/proto"
)

type clusterConfig struct {
	endpoints *endpointv3.ClusterLoadAssignment // nil if the endpoints come from another server
	config    *clusterv3.Cluster                // nil if the file has only endpoints
}

// newClusterConfig returns the configuration of a cluster in a file. Endpoints of a STATIC cluster
// are served over EDS, which every client supports.
func newClusterConfig(c *clusterv3.Cluster) *clusterConfig {
	g := &clusterConfig{config: c}
	if c.GetClusterType() == nil && c.GetType() == clusterv3.Cluster_STATIC {
		g.endpoints = proto.CloneOf(c.GetLoadAssignment())
		g.endpoints.ClusterName = c.GetName()
	}
	return g
}

func (g *clusterConfig) name() string {
	if g.config != nil {
		return g.config.GetName()
	}
	return g.endpoints.GetClusterName()
}

func (g *clusterConfig) message() proto.Message {
	if g.config != nil {
		return g.config
	}
	return g.endpoints
}

func (g *clusterConfig) equal(other *clusterConfig) bool {
	return proto.Equal(g.message(), other.message())
}

func (g *clusterConfig) endpointCount() int {
	n := 0
	for _, locality := range g.endpoints.GetEndpoints() {
		n += len(locality.GetLbEndpoints())
	}
	return n
}
