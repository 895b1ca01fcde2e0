package serve

import (
	"strings"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/proto"

	"github.com/understudy-lb/understudy/internal/clusterfile"
)

type given struct {
	endpoints *endpointv3.ClusterLoadAssignment // nil if the endpoints come from another server
	config    *clusterv3.Cluster                // nil if the file has only endpoints
}

// givenBy wraps a cluster from a file. Endpoints in the file are served over EDS, which every
// client supports.
func givenBy(c *clusterv3.Cluster) *given {
	g := &given{config: c}
	if c.GetClusterType() == nil && c.GetType() == clusterv3.Cluster_STATIC {
		g.endpoints = proto.CloneOf(c.GetLoadAssignment())
		g.endpoints.ClusterName = c.GetName()
	}
	return g
}

func (g *given) name() string {
	switch {
	case g == nil:
		return ""
	case g.config != nil:
		return g.config.GetName()
	}
	return g.endpoints.GetClusterName()
}

func (g *given) message() proto.Message {
	if g.config != nil {
		return g.config
	}
	return g.endpoints
}

func (g *given) equal(other *given) bool { return proto.Equal(g.message(), other.message()) }

func (g *given) count() int {
	n := 0
	for _, locality := range g.endpoints.GetEndpoints() {
		n += len(locality.GetLbEndpoints())
	}
	return n
}

// origin identifies where a cluster comes from: the path of a file and, if the file has a list of
// clusters, the name of the cluster.
type origin string

// separator separates the path from the name. It occurs in no path.
const separator = "\x00"

func originOf(path, cluster string) origin { return origin(path + separator + cluster) }

func (o origin) path() string {
	path, _, _ := strings.Cut(string(o), separator)
	return path
}

func clustersOf(path string, doc *clusterfile.Document) map[origin]*given {
	if doc.Clusters == nil {
		return map[origin]*given{origin(path): {endpoints: doc.Endpoints}}
	}
	all := make(map[origin]*given)
	for _, c := range doc.Clusters {
		all[originOf(path, c.GetName())] = givenBy(c)
	}
	return all
}
