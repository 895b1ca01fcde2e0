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

// innerName names the aggregate cluster that is a member of the outer one.
const innerName = cluster + "Inner"

// members divides the priorities among the clusters of the aggregate. The first cluster gets two
// priorities, and each of the others gets one.
func members(truth Truth) []Truth {
	n := min(2, len(truth))
	all := []Truth{truth[:n:n]}
	for _, tier := range truth[n:] {
		all = append(all, Truth{tier})
	}
	return all
}

// list has the random settings of the clusters in an aggregate, by position.
type list struct {
	*detections
	named [mostMembers]bool // STRICT_DNS clusters, whose endpoints are names
}

// mostMembers limits how many clusters of an aggregate have random settings.
const mostMembers = 8

func newList(r *rand.Rand) *list {
	l := &list{detections: newDetections(r)}
	for i := 1; i < len(l.named); i++ {
		l.named[i] = r.IntN(3) == 0
	}
	return l
}

// clusters returns an aggregate and its clusters. Some of the clusters may be in a second aggregate
// within the first. If static is set, the clusters contain their endpoints. Otherwise they use EDS,
// or DNS if their endpoints are names.
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

// withNames replaces the addresses in the assignment by names.
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
		panic(err)
	}
	return &clusterv3.Cluster{Name: name, LbPolicy: clusterv3.Cluster_CLUSTER_PROVIDED, ClusterDiscoveryType: &clusterv3.Cluster_ClusterType{
		ClusterType: &clusterv3.Cluster_CustomClusterType{Name: "envoy.clusters.aggregate", TypedConfig: config},
	}}
}
