package serve

import (
	"strings"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/proto"

	"github.com/understudy-lb/understudy/internal/envoy/clusterfile"
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
	switch {
	case g == nil:
		return ""
	case g.config != nil:
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

// origin identifies where a cluster comes from: the path of a file and, if the file has a list of
// clusters, the name of the cluster.
type origin string

// originSeparator separates the path from the name of the cluster. No path contains it.
const originSeparator = "\x00"

func originOf(path, cluster string) origin { return origin(path + originSeparator + cluster) }

func (o origin) path() string {
	path, _, _ := strings.Cut(string(o), originSeparator)
	return path
}

// clustersOf returns the clusters in a file. Those that list no endpoint are nil, because their
// endpoints are unknown.
func clustersOf(path string, doc *clusterfile.Document, empty *clusterfile.Empty) map[origin]*clusterConfig {
	all := make(map[origin]*clusterConfig)
	for _, c := range doc.Clusters {
		all[originOf(path, c.GetName())] = newClusterConfig(c)
	}
	switch {
	case doc.Clusters == nil && empty == nil:
		all[origin(path)] = &clusterConfig{endpoints: doc.Endpoints}
	case doc.Clusters == nil:
		all[origin(path)] = nil
	case empty != nil:
		for _, name := range empty.Clusters {
			all[originOf(path, name)] = nil
		}
	}
	return all
}
