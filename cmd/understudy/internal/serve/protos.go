package serve

import (
	"encoding/json"
	"fmt"
	"strings"

	_ "github.com/cncf/xds/go/xds/type/v3"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/round_robin/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/wrr_locality/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// The fallback of the policies is what gRPC uses for ROUND_ROBIN: it chooses localities by weight,
// and the endpoints of a locality evenly.
const (
	edsFields    = `{"type": "EDS", "edsClusterConfig": {"edsConfig": {"ads": {}, "resourceApiVersion": "V3"}}}`
	policyFields = `{"loadBalancingPolicy": {"policies": [
		{"typedExtensionConfig": {"name": "understudy", "typedConfig": {"@type": "type.googleapis.com/xds.type.v3.TypedStruct",
			"typeUrl": "type.googleapis.com/understudy_weighted_round_robin", "value": {}}}},
		{"typedExtensionConfig": {"name": "fallback", "typedConfig": {"@type": "type.googleapis.com/envoy.extensions.load_balancing_policies.wrr_locality.v3.WrrLocality",
			"endpointPickingPolicy": {"policies": [{"typedExtensionConfig": {"name": "round_robin", "typedConfig": {
				"@type": "type.googleapis.com/envoy.extensions.load_balancing_policies.round_robin.v3.RoundRobin"}}}]}}}}]}}`
	// listenerFields contains its routes, so that clients need not request them. The routes send
	// every call to the cluster with the same name.
	listenerFields = `{"name": NAME, "apiListener": {"apiListener": {
		"@type": "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
		"routeConfig": {"name": NAME, "virtualHosts": [{"name": NAME, "domains": ["*"], "routes": [{"match": {"prefix": ""}, "route": {"cluster": NAME}}]}]},
		"httpFilters": [{"name": "router", "typedConfig": {"@type": "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router"}}]}}}`
)

// setFields sets the fields in text, which is JSON.
func setFields(m proto.Message, text string) error {
	fields := m.ProtoReflect().New().Interface()
	err := protojson.Unmarshal([]byte(text), fields)
	proto.Merge(m, fields)
	return err
}

// clusterFor returns the cluster to serve for g. It adds the fields that clients need and that the
// file may omit.
func clusterFor(g *clusterConfig, policy string) (*clusterv3.Cluster, error) {
	cluster := &clusterv3.Cluster{Name: g.name(), OutlierDetection: g.config.GetOutlierDetection()}
	if g.endpoints == nil {
		cluster = proto.CloneOf(g.config)
	}
	isEDS := cluster.GetClusterType() == nil && (g.endpoints != nil || cluster.GetType() == clusterv3.Cluster_EDS)
	if isEDS && cluster.GetEdsClusterConfig().GetEdsConfig() == nil {
		if err := setFields(cluster, edsFields); err != nil {
			return nil, err
		}
	}
	if policy == RoundRobin || cluster.GetLoadBalancingPolicy() != nil || cluster.GetType() == clusterv3.Cluster_LOGICAL_DNS {
		return cluster, nil
	}
	return cluster, setFields(cluster, policyFields)
}

// listenerFor returns the listener for gRPC clients with the target xds:///name.
func listenerFor(name string) (*listenerv3.Listener, error) {
	quoted, err := json.Marshal(name)
	if err != nil {
		return nil, err
	}
	listener := new(listenerv3.Listener)
	if err := setFields(listener, strings.ReplaceAll(listenerFields, "NAME", string(quoted))); err != nil {
		return nil, fmt.Errorf("cluster %q: %w", name, err)
	}
	return listener, nil
}
