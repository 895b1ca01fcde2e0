package sim

import (
	"fmt"
	"math/rand/v2"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	aggregatev3 "github.com/envoyproxy/go-control-plane/envoy/extensions/clusters/aggregate/v3"
	"google.golang.org/protobuf/types/known/anypb"
)

func memberName(i int) string { return fmt.Sprintf("%s%d", cluster, i) }

// innerName is the name of an aggregate in the aggregate.
const innerName = cluster + "Inner"

// members divides truth among the clusters of the aggregate. The first one gets two priorities, and
// the others one each. There is at least one cluster.
func members(truth Truth) []Truth {
	n := min(2, len(truth))
	all := []Truth{truth[:n:n]}
	for _, tier := range truth[n:] {
		all = append(all, Truth{tier})
	}
	return all
}

// list is what was drawn for the clusters of an aggregate, by their positions.
type list struct {
	*detections
	named [mostMembers]bool // STRICT_DNS clusters, whose endpoints are names
}

// mostMembers is how many clusters of an aggregate may have other than default settings.
const mostMembers = 8

func newList(r *rand.Rand) *list {
	l := &list{detections: newDetections(r)}
	for i := 1; i < len(l.named); i++ {
		l.named[i] = r.IntN(3) == 0
	}
	return l
}

// clusters returns the aggregate for truth and its clusters. If there are several, some are in a
// second aggregate within the first. If static is set, the clusters contain their endpoints;
// otherwise they are of type EDS, except for those whose endpoints are names.
func (l *list) clusters(truth Truth, static bool) []*clusterv3.Cluster {
	outer, inner := []string{memberName(0)}, []string(nil)
	var all []*clusterv3.Cluster
	for i, own := range members(truth) {
		name := memberName(i)
		c := &clusterv3.Cluster{Name: name, OutlierDetection: l.at(i).proto()}
		switch {
		case l.named[i%mostMembers]:
			c.ClusterDiscoveryType = &clusterv3.Cluster_Type{Type: clusterv3.Cluster_STRICT_DNS}
			c.LoadAssignment = withNames(own.Cluster(name))
		case static:
			c.ClusterDiscoveryType = &clusterv3.Cluster_Type{Type: clusterv3.Cluster_STATIC}
			c.LoadAssignment = own.Cluster(name)
		default:
			c.ClusterDiscoveryType = &clusterv3.Cluster_Type{Type: clusterv3.Cluster_EDS}
			c.EdsClusterConfig = &clusterv3.Cluster_EdsClusterConfig{EdsConfig: &corev3.ConfigSource{
				ConfigSourceSpecifier: &corev3.ConfigSource_Ads{Ads: &corev3.AggregatedConfigSource{}},
			}}
		}
		all = append(all, c)
		if i > 0 {
			inner = append(inner, name)
		}
	}
	if len(inner) > 0 {
		outer = append(outer, innerName)
		// The first cluster occurs twice, and only its first position counts.
		all = append(all, aggregate(innerName, append(inner, memberName(0))))
	}
	return append(all, aggregate(cluster, outer))
}

// withNames replaces addresses by names, in the assignment that it is given.
func withNames(assignment *endpointv3.ClusterLoadAssignment) *endpointv3.ClusterLoadAssignment {
	for _, locality := range assignment.GetEndpoints() {
		for _, e := range locality.GetLbEndpoints() {
			socket := e.GetEndpoint().GetAddress().GetSocketAddress()
			socket.Address = nameOf(socket.GetAddress())
		}
	}
	return assignment
}

func aggregate(name string, names []string) *clusterv3.Cluster {
	config, err := anypb.New(&aggregatev3.ClusterConfig{Clusters: names})
	if err != nil {
		panic(err) // everything in the message can be encoded
	}
	return &clusterv3.Cluster{Name: name, LbPolicy: clusterv3.Cluster_CLUSTER_PROVIDED, ClusterDiscoveryType: &clusterv3.Cluster_ClusterType{
		ClusterType: &clusterv3.Cluster_CustomClusterType{Name: "envoy.clusters.aggregate", TypedConfig: config},
	}}
}
