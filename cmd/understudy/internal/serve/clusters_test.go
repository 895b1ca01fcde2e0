package serve

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
)

const aggregateFile = `clusters:
- name: shop
  cluster_type:
    name: envoy.clusters.aggregate
    typed_config:
      "@type": type.googleapis.com/envoy.extensions.clusters.aggregate.v3.ClusterConfig
      clusters: [near, far, backup]
- {name: near, type: STATIC, load_assignment: {endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: 192.0.2.1, port_value: 1}}}}]}]}}
- {name: far, type: EDS, eds_cluster_config: {service_name: payments}}
- {name: backup, type: LOGICAL_DNS, load_assignment: {endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: backup.example.com, port_value: 443}}}}]}]}}
`

func fetchClusters(t *testing.T, s *Server, names ...string) map[string]*clusterv3.Cluster {
	t.Helper()
	stream := openStream(t, s, nil)
	send(t, stream, &discoveryv3.DiscoveryRequest{TypeUrl: clusterType, ResourceNames: names, Node: &corev3.Node{Id: "me"}})
	all := make(map[string]*clusterv3.Cluster)
	for _, resource := range receive(t, stream).GetResources() {
		c := new(clusterv3.Cluster)
		must(t, resource.UnmarshalTo(c))
		all[c.GetName()] = c
	}
	return all
}

// Each cluster in a file is served under its name. A cluster with inline endpoints becomes an EDS
// cluster, and the server sets the fields that clients need.
func TestFileWithClusterList(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "shop.yaml")
	write(t, path, aggregateFile)
	write(t, filepath.Join(dir, "payments.yaml"), endpoints("1", "2"))
	cache := filepath.Join(t.TempDir(), "cache")
	s, l := start(t, Options{Paths: []string{dir}, Cache: cache})
	got := fetchClusters(t, s, "shop", "near", "far", "backup", "payments")
	if names := slices.Sorted(maps.Keys(got)); len(names) != 5 {
		t.Fatalf("%v are served", names)
	}
	if got["shop"].GetClusterType().GetName() != "envoy.clusters.aggregate" || got["near"].GetType() != clusterv3.Cluster_EDS ||
		got["far"].GetEdsClusterConfig().GetEdsConfig().GetAds() == nil || got["far"].GetEdsClusterConfig().GetServiceName() != "payments" ||
		got["backup"].GetType() != clusterv3.Cluster_LOGICAL_DNS || got["far"].GetLoadBalancingPolicy() == nil {
		t.Errorf("served %v", got)
	}
	next := requestEndpoints(t, openStream(t, s, nil), "near")
	if n := next(); n != 1 {
		t.Errorf("near has %d endpoints, want 1", n)
	}
	write(t, path, strings.Replace(aggregateFile, "LOGICAL_DNS", "ORIGINAL_DST", 1))
	if line := l.wait(t, "rejected, its last good content is still served"); !strings.Contains(line["error"].(string), "shop.yaml:10:24: type ORIGINAL_DST is not supported") || len(line["clusters"].([]any)) != 4 {
		t.Errorf("rejected with %v", line)
	}
	if n := len(fetchClusters(t, s, "shop", "near", "far", "backup")); n != 4 {
		t.Errorf("%d clusters are still served, want 4", n)
	}
	s.Stop()
	s, _ = start(t, Options{Paths: []string{dir}, Cache: cache})
	if got := fetchClusters(t, s, "shop", "near", "far", "backup"); len(got) != 4 || got["backup"].GetType() != clusterv3.Cluster_LOGICAL_DNS {
		t.Errorf("%v are restored", got)
	}
	write(t, path, strings.Replace(aggregateFile, "type: STATIC", "type: STRICT_DNS", 1))
	var near *clusterv3.Cluster
	for near.GetType() != clusterv3.Cluster_STRICT_DNS {
		near = fetchClusters(t, s, "near")["near"]
	}
	if near.GetLoadAssignment() == nil {
		t.Errorf("near is %v", near)
	}
}

// Clients receive the outlier detection of a cluster in a file, even if the server restores the
// cluster from the cache. If the outlier detection is invalid, the file is rejected.
func TestOutlierDetectionIsServed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "shop.yaml")
	const detect = "outlier_detection: {interval: 5s}"
	withDetection := strings.NewReplacer("near, type", "near, "+detect+", type", "far, type", "far, "+detect+", type").Replace(aggregateFile)
	write(t, path, withDetection)
	cache := filepath.Join(t.TempDir(), "cache")
	for range 2 {
		s, l := start(t, Options{Paths: []string{dir}, Cache: cache})
		got := fetchClusters(t, s, "near", "far", "backup")
		for _, name := range []string{"near", "far"} {
			if got[name].GetType() != clusterv3.Cluster_EDS || got[name].GetOutlierDetection().GetInterval().GetSeconds() != 5 {
				t.Errorf("%s is served as %v", name, got[name])
			}
		}
		if got["backup"].GetOutlierDetection() != nil {
			t.Errorf("backup is served as %v", got["backup"])
		}
		if n := requestEndpoints(t, openStream(t, s, nil), "near")(); n != 1 {
			t.Errorf("near has %d endpoints, want 1", n)
		}
		write(t, path, strings.Replace(withDetection, "interval: 5s", "interval: -5s", 1))
		if line := l.wait(t, "rejected, its last good content is still served"); !strings.Contains(line["error"].(string), "shop.yaml:8:46: interval is -5s, want a duration that is not negative") {
			t.Errorf("rejected with %v", line)
		}
		s.Stop()
	}
}

// What the server has not read, it does not send: without its value, an UpstreamTlsContext would
// mean something else. The log says what is left out, and the cache has what is served.
func TestUnreadFieldsAreNotServed(t *testing.T) {
	dir, cache := t.TempDir(), filepath.Join(t.TempDir(), "cache")
	path := filepath.Join(dir, "shop.yaml")
	const tls = "transport_socket: {name: tls, typed_config: {'@type': type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext, sni: a}}"
	const options = "typed_extension_protocol_options: {http: {'@type': type.googleapis.com/example.Unknown, a: 1}}"
	write(t, path, strings.Replace(aggregateFile, "backup, type", "backup, "+tls+", "+options+", type", 1))
	s, l := start(t, Options{Paths: []string{dir}, Cache: cache})
	line := l.wait(t, "some fields are not sent to clients")
	if notes, _ := line["notes"].(string); line["level"] != "WARN" || !strings.Contains(notes, path+":10:18: left out for clients, because envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext is not read") ||
		!strings.Contains(notes, "because example.Unknown is not read") {
		t.Errorf("the log says %v", line)
	}
	for range 2 {
		backup := fetchClusters(t, s, "backup")["backup"]
		if backup.GetType() != clusterv3.Cluster_LOGICAL_DNS || backup.GetTransportSocket() != nil || backup.GetTypedExtensionProtocolOptions() != nil {
			t.Errorf("backup is served as %v", backup)
		}
		s.Stop()
		write(t, path, "[")
		s, _ = start(t, Options{Paths: []string{dir}, Cache: cache})
	}
}
