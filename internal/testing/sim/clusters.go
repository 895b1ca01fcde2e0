package sim

import (
	"fmt"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	aggregatev3 "github.com/envoyproxy/go-control-plane/envoy/extensions/clusters/aggregate/v3"
	"google.golang.org/protobuf/types/known/anypb"
)

func memberName(i int) string { return fmt.Sprintf("%s%d", cluster, i) }

const innerName = cluster + "Inner"

// members gives the first cluster two priorities and the rest one each.
func members(truth EndpointSet) []EndpointSet {
	n := min(2, len(truth))
	all := []EndpointSet{truth[:n:n]}
	for _, tier := range truth[n:] {
		all = append(all, EndpointSet{tier})
	}
	return all
}

// clusters returns an aggregate cluster and its members. All members but the first are in a second
// aggregate inside of it. If static is set, the members contain their endpoints; otherwise they use
// EDS.
func clusters(truth EndpointSet, static bool) []*clusterv3.Cluster {
	outer, inner := []string{memberName(0)}, []string(nil)
	var all []*clusterv3.Cluster
	for i, member := range members(truth) {
		name := memberName(i)
		c := &clusterv3.Cluster{Name: name}
		if static {
			c.ClusterDiscoveryType = &clusterv3.Cluster_Type{Type: clusterv3.Cluster_STATIC}
			c.LoadAssignment = member.Cluster(name)
		} else {
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
		// The first cluster is in both aggregates. Its second position must have no effect.
		all = append(all, aggregate(innerName, append(inner, memberName(0))))
	}
	return append(all, aggregate(cluster, outer))
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
