package serve

import (
	"fmt"

	typev3 "github.com/cncf/xds/go/xds/type/v3"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	routerv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	roundrobinv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/round_robin/v3"
	wrrlocalityv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/wrr_locality/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/structpb"
)

func newCluster(name, policy string) (*clusterv3.Cluster, error) {
	cluster := &clusterv3.Cluster{
		Name:                 name,
		ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: clusterv3.Cluster_EDS},
		EdsClusterConfig: &clusterv3.Cluster_EdsClusterConfig{
			EdsConfig: adsSource(),
		},
		LbPolicy: clusterv3.Cluster_ROUND_ROBIN,
	}
	return cluster, setPolicy(cluster, policy)
}

// clusterFor returns the cluster to serve for g. It adds the fields that clients need and that the
// file may omit.
func clusterFor(g *clusterConfig, policy string) (*clusterv3.Cluster, error) {
	if g.endpoints != nil {
		cluster, err := newCluster(g.name(), policy)
		cluster.OutlierDetection = g.config.GetOutlierDetection()
		return cluster, err
	}
	cluster := proto.CloneOf(g.config)
	if cluster.GetClusterType() == nil && cluster.GetType() == clusterv3.Cluster_EDS {
		if cluster.GetEdsClusterConfig() == nil {
			cluster.EdsClusterConfig = new(clusterv3.Cluster_EdsClusterConfig)
		}
		if cluster.GetEdsClusterConfig().GetEdsConfig() == nil {
			cluster.EdsClusterConfig.EdsConfig = adsSource()
		}
	}
	if cluster.GetLoadBalancingPolicy() != nil || cluster.GetType() == clusterv3.Cluster_LOGICAL_DNS {
		return cluster, nil
	}
	return cluster, setPolicy(cluster, policy)
}

func adsSource() *corev3.ConfigSource {
	return &corev3.ConfigSource{
		ResourceApiVersion:    corev3.ApiVersion_V3,
		ConfigSourceSpecifier: &corev3.ConfigSource_Ads{Ads: &corev3.AggregatedConfigSource{}},
	}
}

// setPolicy sets a cluster's load balancing policy, with a fallback for clients that do not support
// it.
func setPolicy(cluster *clusterv3.Cluster, policy string) error {
	if policy == RoundRobin {
		return nil
	}
	preferred, err := newPolicies("understudy", &typev3.TypedStruct{TypeUrl: "type.googleapis.com/" + policy, Value: new(structpb.Struct)})
	if err != nil {
		return err
	}
	// The fallback is what gRPC uses for ROUND_ROBIN: it chooses localities by weight, and the
	// endpoints of a locality evenly.
	roundRobin, err := newPolicies("round_robin", new(roundrobinv3.RoundRobin))
	if err != nil {
		return err
	}
	fallback, err := newPolicies("fallback", &wrrlocalityv3.WrrLocality{EndpointPickingPolicy: roundRobin})
	if err != nil {
		return err
	}
	cluster.LoadBalancingPolicy = &clusterv3.LoadBalancingPolicy{Policies: append(preferred.GetPolicies(), fallback.GetPolicies()...)}
	return nil
}

func newPolicies(name string, config proto.Message) (*clusterv3.LoadBalancingPolicy, error) {
	packed, err := anypb.New(config)
	if err != nil {
		return nil, err
	}
	return &clusterv3.LoadBalancingPolicy{Policies: []*clusterv3.LoadBalancingPolicy_Policy{{
		TypedExtensionConfig: &corev3.TypedExtensionConfig{Name: name, TypedConfig: packed},
	}}}, nil
}

// newListener returns the listener for gRPC clients with the target xds:///name. It contains its
// routes, so that clients need not request them. The routes send every call to the cluster with
// this name.
func newListener(name string) (*listenerv3.Listener, error) {
	router, err := anypb.New(&routerv3.Router{})
	if err != nil {
		return nil, fmt.Errorf("cluster %q: %w", name, err)
	}
	manager, err := anypb.New(&hcmv3.HttpConnectionManager{
		RouteSpecifier: &hcmv3.HttpConnectionManager_RouteConfig{RouteConfig: newRoutes(name)},
		HttpFilters: []*hcmv3.HttpFilter{{
			Name:       "router",
			ConfigType: &hcmv3.HttpFilter_TypedConfig{TypedConfig: router},
		}},
	})
	if err != nil {
		return nil, fmt.Errorf("cluster %q: %w", name, err)
	}
	return &listenerv3.Listener{Name: name, ApiListener: &listenerv3.ApiListener{ApiListener: manager}}, nil
}

func newRoutes(name string) *routev3.RouteConfiguration {
	all := &routev3.Route{
		Match:  &routev3.RouteMatch{PathSpecifier: &routev3.RouteMatch_Prefix{Prefix: ""}},
		Action: &routev3.Route_Route{Route: &routev3.RouteAction{ClusterSpecifier: &routev3.RouteAction_Cluster{Cluster: name}}},
	}
	return &routev3.RouteConfiguration{
		Name:         name,
		VirtualHosts: []*routev3.VirtualHost{{Name: name, Domains: []string{"*"}, Routes: []*routev3.Route{all}}},
	}
}
