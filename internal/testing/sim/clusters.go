package sim

import (
	"fmt"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	aggregatev3 "github.com/envoyproxy/go-control-plane/envoy/extensions/clusters/aggregate/v3"
	"google.golang.org/protobuf/types/known/anypb"
)

// memberName returns the name of a cluster within the aggregate.
func memberName(i int) string { return fmt.Sprintf("%s%d", cluster, i) }

// innerName is that of an aggregate within the aggregate.
const innerName = cluster + "Inner"

// members returns what each cluster within the aggregate has of truth: the first has two
// priorities, all others have one each. There is at least one.
func members(truth Truth) []Truth {
	n := min(2, len(truth))
	all := []Truth{truth[:n:n]}
	for _, tier := range truth[n:] {
		all = append(all, Truth{tier})
	}
	return all
}

// clusters returns the aggregate over truth, with another one within it where there is
// more than one cluster, and its members: with their endpoints if static, else such as
// EDS is asked for.
func clusters(truth Truth, static bool) []*clusterv3.Cluster {
	outer, inner := []string{memberName(0)}, []string(nil)
	var list []*clusterv3.Cluster
	for i, own := range members(truth) {
		name := memberName(i)
		c := &clusterv3.Cluster{Name: name}
		if static {
			c.ClusterDiscoveryType = &clusterv3.Cluster_Type{Type: clusterv3.Cluster_STATIC}
			c.LoadAssignment = own.Cluster(name)
		} else {
			c.ClusterDiscoveryType = &clusterv3.Cluster_Type{Type: clusterv3.Cluster_EDS}
			c.EdsClusterConfig = &clusterv3.Cluster_EdsClusterConfig{EdsConfig: &corev3.ConfigSource{
				ConfigSourceSpecifier: &corev3.ConfigSource_Ads{Ads: &corev3.AggregatedConfigSource{}},
			}}
		}
		list = append(list, c)
		if i > 0 {
			inner = append(inner, name)
		}
	}
	if len(inner) > 0 {
		outer = append(outer, innerName)
		list = append(list, aggregate(innerName, inner))
	}
	return append(list, aggregate(cluster, outer))
}

func aggregate(name string, names []string) *clusterv3.Cluster {
	config, err := anypb.New(&aggregatev3.ClusterConfig{Clusters: names})
	if err != nil {
		panic(err) // there is nothing in it that could not be encoded
	}
	return &clusterv3.Cluster{Name: name, LbPolicy: clusterv3.Cluster_CLUSTER_PROVIDED, ClusterDiscoveryType: &clusterv3.Cluster_ClusterType{
		ClusterType: &clusterv3.Cluster_CustomClusterType{Name: "envoy.clusters.aggregate", TypedConfig: config},
	}}
}
