package serve

import (
	"strings"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/proto"

	"github.com/understudy-lb/understudy/internal/clusterfile"
)

// given is a cluster that a file gives: its endpoints, or where they come from, or both.
type given struct {
	endpoints *endpointv3.ClusterLoadAssignment // nil where they come from elsewhere
	config    *clusterv3.Cluster                // nil where the file gives nothing else
}

// givenBy returns what a cluster in a file gives. Endpoints that are in it are served as
// those of a cluster with EDS, which every client knows.
func givenBy(c *clusterv3.Cluster) *given {
	g := &given{config: c}
	if c.GetClusterType() == nil && c.GetType() == clusterv3.Cluster_STATIC {
		g.endpoints = proto.CloneOf(c.GetLoadAssignment())
		g.endpoints.ClusterName = c.GetName()
	}
	return g
}

// name is the cluster's, "" where nothing can be learnt of it.
func (g *given) name() string {
	switch {
	case g == nil:
		return ""
	case g.config != nil:
		return g.config.GetName()
	}
	return g.endpoints.GetClusterName()
}

// message is what it consists of.
func (g *given) message() proto.Message {
	if g.config != nil {
		return g.config
	}
	return g.endpoints
}

func (g *given) equal(other *given) bool { return proto.Equal(g.message(), other.message()) }

// count returns how many endpoints are in it.
func (g *given) count() int {
	n := 0
	for _, locality := range g.endpoints.GetEndpoints() {
		n += len(locality.GetLbEndpoints())
	}
	return n
}

// origin is where a cluster comes from: the path of a file, and the name of one of those
// that it lists, if it does.
type origin string

// separator is in no path.
const separator = "\x00"

func originOf(path, cluster string) origin { return origin(path + separator + cluster) }

// path is that of the file.
func (o origin) path() string {
	path, _, _ := strings.Cut(string(o), separator)
	return path
}

// clustersOf returns what a document gives, by origin.
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
