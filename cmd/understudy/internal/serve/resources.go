package serve

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"sync/atomic"

	_ "github.com/cncf/xds/go/xds/type/v3"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/round_robin/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/wrr_locality/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
)

const (
	clusterType  = "type.googleapis.com/envoy.config.cluster.v3.Cluster"
	endpointType = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment"
	listenerType = "type.googleapis.com/envoy.config.listener.v3.Listener"
)

// resources has what we serve. Streams read snapshots of it without any locks, so that a client
// with a large request doesn't hold up the others.
type resources struct {
	policy  string
	current atomic.Pointer[snapshot]
}

type snapshot struct { // immutable
	loaded     bool                           // we have something valid
	incomplete bool                           // some source was never readable, so there may be more clusters
	byType     map[string]map[string]resource // keyed by type URL, then by name
	outdated   chan struct{}                  // closed once there's a newer snapshot
}

type resource struct {
	content *anypb.Any
	version string // hash of the content, so all replicas agree on it
}

func newResources(policy string) *resources {
	r := &resources{policy: policy}
	r.current.Store(&snapshot{
		byType:   map[string]map[string]resource{clusterType: {}, endpointType: {}, listenerType: {}},
		outdated: make(chan struct{}),
	})
	return r
}

// set isn't safe for concurrent use.
func (r *resources) set(c changes, served map[string]servedCluster) error {
	before := r.current.Load()
	if len(c.updated)+len(c.removed) == 0 && c.incomplete == before.incomplete {
		return nil
	}
	next := &snapshot{loaded: before.loaded || len(c.updated) > 0, incomplete: c.incomplete, byType: make(map[string]map[string]resource), outdated: make(chan struct{})}
	for typeURL, all := range before.byType {
		next.byType[typeURL] = maps.Clone(all)
		for _, name := range c.removed {
			delete(next.byType[typeURL], name)
		}
	}
	for _, name := range c.updated {
		if err := next.add(served[name].cluster, r.policy); err != nil {
			return err
		}
	}
	r.current.Store(next)
	close(before.outdated)
	return nil
}

func (n *snapshot) add(g *clusterConfig, policy string) error {
	name := g.GetName()
	listener, err := listenerFor(name)
	if err != nil {
		return err
	}
	messages := map[string]proto.Message{clusterType: clusterFor(g, policy), listenerType: listener}
	if delete(n.byType[endpointType], name); g.endpoints != nil {
		messages[endpointType] = g.endpoints
	}
	for typeURL, message := range messages {
		data, err := proto.MarshalOptions{Deterministic: true}.Marshal(message)
		if err != nil {
			return err
		}
		sum := sha256.Sum256(data)
		n.byType[typeURL][name] = resource{&anypb.Any{TypeUrl: typeURL, Value: data}, hex.EncodeToString(sum[:12])}
	}
	return nil
}

// response returns the names to send, in order, and the versions that the client will have
// afterwards. If ok is false, there's nothing to send yet.
func (n *snapshot) response(typeURL string, t *topic) (names []string, versions map[string]string, ok bool) {
	all, served := n.byType[typeURL]
	if !served {
		return nil, nil, t.nonce == "" && n.loaded && !n.incomplete
	}
	// Clients drop any listener or cluster that isn't in a response, but they keep endpoints.
	listsAll := typeURL != endpointType
	if !n.mayRespond(listsAll, t) {
		return nil, nil, false
	}
	requested := maps.Keys(t.names)
	if t.wildcard {
		requested = maps.Keys(all)
	}
	versions = make(map[string]string)
	for name := range requested {
		if r, exists := all[name]; exists {
			versions[name] = r.version
			if listsAll || t.sent[name] != r.version {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return names, versions, t.nonce == "" || !listsAll && len(names) > 0 || listsAll && !maps.Equal(versions, t.sent)
}

func (n *snapshot) mayRespond(listsAll bool, t *topic) bool {
	// If a response is supposed to list everything, clients drop any resource that isn't in it. So
	// if we've just started and a file is invalid, responding would make them drop endpoints that
	// still work. If we don't respond, clients keep what they have.
	if !n.incomplete || !listsAll || !n.loaded {
		return n.loaded
	}
	for name := range t.names {
		if _, served := n.byType[clusterType][name]; !served {
			return false
		}
	}
	return !t.wildcard || t.nonce != ""
}

// For clients without our policy, we fall back to what gRPC uses for ROUND_ROBIN: localities by
// weight, and round robin within a locality.
var (
	edsFields    = newCluster(`{"type": "EDS", "edsClusterConfig": {"edsConfig": {"ads": {}, "resourceApiVersion": "V3"}}}`)
	policyFields = newCluster(`{"loadBalancingPolicy": {"policies": [
		{"typedExtensionConfig": {"name": "understudy", "typedConfig": {"@type": "type.googleapis.com/xds.type.v3.TypedStruct",
			"typeUrl": "type.googleapis.com/understudy_weighted_round_robin", "value": {}}}},
		{"typedExtensionConfig": {"name": "fallback", "typedConfig": {"@type": "type.googleapis.com/envoy.extensions.load_balancing_policies.wrr_locality.v3.WrrLocality",
			"endpointPickingPolicy": {"policies": [{"typedExtensionConfig": {"name": "round_robin", "typedConfig": {
				"@type": "type.googleapis.com/envoy.extensions.load_balancing_policies.round_robin.v3.RoundRobin"}}}]}}}}]}}`)
)

// The routes are part of the listener, so clients don't have to request them. All calls go to the
// cluster of the same name.
const listenerFields = `{"name": NAME, "apiListener": {"apiListener": {
		"@type": "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
		"routeConfig": {"name": NAME, "virtualHosts": [{"name": NAME, "domains": ["*"], "routes": [{"match": {"prefix": ""}, "route": {"cluster": NAME}}]}]},
		"httpFilters": [{"name": "router", "typedConfig": {"@type": "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router"}}]}}}`

func newCluster(text string) *clusterv3.Cluster {
	c := new(clusterv3.Cluster)
	if err := protojson.Unmarshal([]byte(text), c); err != nil {
		panic(err)
	}
	return c
}

func clusterFor(g *clusterConfig, policy string) *clusterv3.Cluster {
	cluster := &clusterv3.Cluster{Name: g.GetName(), OutlierDetection: g.GetOutlierDetection()}
	if g.endpoints == nil {
		cluster = proto.CloneOf(g.Cluster)
	}
	isEDS := cluster.GetClusterType() == nil && (g.endpoints != nil || cluster.GetType() == clusterv3.Cluster_EDS)
	if isEDS && cluster.GetEdsClusterConfig().GetEdsConfig() == nil {
		proto.Merge(cluster, edsFields)
	}
	if policy != RoundRobin && cluster.GetLoadBalancingPolicy() == nil && cluster.GetType() != clusterv3.Cluster_LOGICAL_DNS {
		proto.Merge(cluster, policyFields)
	}
	return cluster
}

func listenerFor(name string) (*listenerv3.Listener, error) {
	quoted, _ := json.Marshal(name) // can't fail for a string
	listener := new(listenerv3.Listener)
	return listener, protojson.Unmarshal([]byte(strings.ReplaceAll(listenerFields, "NAME", string(quoted))), listener)
}
