package clusterfile

import (
	"slices"
	"strings"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	wrrlocalityv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/wrr_locality/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3" // linked, but not read
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
)

// fromEnvoy is a file of Envoy's examples. The program links UpstreamTlsContext, but not
// HttpProtocolOptions.
const fromEnvoy = `clusters:
- name: service
  type: STRICT_DNS
  typed_extension_protocol_options:
    envoy.extensions.upstreams.http.v3.HttpProtocolOptions:
      "@type": type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions
      explicit_http_config: {http2_protocol_options: {}}
  load_assignment:
    cluster_name: service
    endpoints:
    - lb_endpoints:
      - endpoint: {address: {socket_address: {address: service.example.com, port_value: 50051}}}
        metadata:
          filter_metadata: {envoy.lb: {canary: true}}
          typed_filter_metadata: {x: {"@type": type.googleapis.com/example.Metadata, a: 1}}
  transport_socket:
    name: envoy.transport_sockets.tls
    typed_config:
      "@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext
      sni: service.example.com
  transport_socket_matches:
  - {name: a, transport_socket: {name: raw}}
  - {name: b, transport_socket: {name: tls, typed_config: {"@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext}}}
  filters:
  - {name: x, typed_config: {"@type": type.googleapis.com/example.Filter}}
  load_balancing_policy:
    policies:
    - typed_extension_config: {name: ring, typed_config: {"@type": type.googleapis.com/envoy.extensions.load_balancing_policies.ring_hash.v3.RingHash, minimum_ring_size: 5}}
    - typed_extension_config:
        name: only-unread
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.load_balancing_policies.wrr_locality.v3.WrrLocality
          endpoint_picking_policy: {policies: [{typed_extension_config: {name: x, typed_config: {"@type": type.googleapis.com/example.Policy}}}]}
    - typed_extension_config:
        name: wrr
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.load_balancing_policies.wrr_locality.v3.WrrLocality
          endpoint_picking_policy:
            policies:
            - typed_extension_config: {name: x, typed_config: {"@type": type.googleapis.com/example.Policy, a: 1}}
            - typed_extension_config: {name: rr, typed_config: {"@type": type.googleapis.com/xds.type.v3.TypedStruct, type_url: x/understudy_weighted_round_robin, value: {a: 1, b: 2, c: 3, d: 4, e: 5, f: 6, g: 7, h: {a: 1, b: 2, c: 3, d: 4, e: 5, f: 6, g: 7}}}}
`

// Whether a file is valid must not depend on what the program links. An Any that we do not read
// keeps its type and has no value; an Any that we read has all of its fields.
func TestUnreadAnys(t *testing.T) {
	doc, err := Load(writeFile(t, fromEnvoy))
	if err != nil {
		t.Fatal(err)
	}
	c := doc.Clusters[0]
	for _, unread := range []*anypb.Any{
		c.GetTransportSocket().GetTypedConfig(),
		c.GetTypedExtensionProtocolOptions()["envoy.extensions.upstreams.http.v3.HttpProtocolOptions"],
		c.GetLoadBalancingPolicy().GetPolicies()[0].GetTypedExtensionConfig().GetTypedConfig(),
	} {
		if !strings.HasPrefix(unread.GetTypeUrl(), "type.googleapis.com/envoy.extensions.") || len(unread.GetValue()) > 0 {
			t.Errorf("an Any that is not read is %v, want its type without a value", unread)
		}
	}
	var wrr wrrlocalityv3.WrrLocality
	if err := c.GetLoadBalancingPolicy().GetPolicies()[2].GetTypedExtensionConfig().GetTypedConfig().UnmarshalTo(&wrr); err != nil {
		t.Fatal(err)
	}
	if got := wrr.GetEndpointPickingPolicy().GetPolicies(); len(got) != 2 || got[1].GetTypedExtensionConfig().GetName() != "rr" {
		t.Errorf("the policies in WrrLocality are %v, want two", got)
	}
}

func TestRemoveUnread(t *testing.T) {
	path := writeFile(t, fromEnvoy)
	doc, _, notes, err := LoadEach(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		":5:5: left out for clients, because envoy.extensions.upstreams.http.v3.HttpProtocolOptions is not read",
		":15:35: left out for clients, because example.Metadata is not read",
		":16:3: left out for clients, because envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext is not read",
		":23:5: ", ":24:3: ", ":25:5: ", ":28:7: ", ":29:7: ", ":33:48: ", ":40:15: left out for clients, because example.Policy is not read",
	} {
		if notes == nil || strings.Count(notes.Error(), path+want) != 1 {
			t.Errorf("notes = %v\nwant %s once", notes, want)
		}
	}
	want, _, noNotes, err := LoadEach(writeFile(t, `clusters:
- name: service
  type: STRICT_DNS
  load_assignment:
    cluster_name: service
    endpoints:
    - lb_endpoints:
      - endpoint: {address: {socket_address: {address: service.example.com, port_value: 50051}}}
        metadata: {filter_metadata: {envoy.lb: {canary: true}}}
  transport_socket_matches:
  - {name: a, transport_socket: {name: raw}}
  load_balancing_policy:
    policies:
    - typed_extension_config:
        name: wrr
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.load_balancing_policies.wrr_locality.v3.WrrLocality
          endpoint_picking_policy:
            policies:
            - typed_extension_config: {name: rr, typed_config: {"@type": type.googleapis.com/xds.type.v3.TypedStruct, type_url: x/understudy_weighted_round_robin, value: {a: 1, b: 2, c: 3, d: 4, e: 5, f: 6, g: 7, h: {a: 1, b: 2, c: 3, d: 4, e: 5, f: 6, g: 7}}}}
`))
	if err != nil {
		t.Fatal(err)
	}
	if !proto.Equal(doc.Clusters[0], want.Clusters[0]) {
		t.Errorf("the cluster is %s\nwant %s", prototext.Format(doc.Clusters[0]), prototext.Format(want.Clusters[0]))
	}
	if noNotes != nil {
		t.Errorf("notes = %v, want none for what is read", noNotes)
	}
}

// However an endpoint is written, removing what is not read must not remove the endpoint.
func TestRemoveUnreadKeepsEndpoints(t *testing.T) {
	doc, _, notes, err := LoadEach(writeFile(t, `endpoints:
- lb_endpoints:
  - endpoint: {address: {pipe: {path: /a}}}
    metadata: {typed_filter_metadata: {x: {"@type": type.googleapis.com/example.Metadata}}}
  leds_cluster_locality_config:
    leds_collection_name: a
    leds_config: {api_config_source: {grpc_services: [{google_grpc: {call_credentials: [{from_plugin: {typed_config: {"@type": type.googleapis.com/example.Plugin}}}]}}]}}
`))
	if err != nil {
		t.Fatal(err)
	}
	if notes == nil || !strings.Contains(notes.Error(), ":5:3: ") {
		t.Errorf("notes = %v, want one about leds_cluster_locality_config", notes)
	}
	if n := len(doc.Endpoints.GetEndpoints()[0].GetLbEndpoints()); n != 1 {
		t.Errorf("%d endpoints are left, want 1: %v", n, doc.Endpoints)
	}
}

// The wrappers of files for Envoy make no difference.
func TestWrappers(t *testing.T) {
	const (
		ofCluster    = `"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster, `
		ofAssignment = `"@type": type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment, `
		content      = `endpoints: [{lb_endpoints: [{endpoint: {address: {pipe: {path: /a}}}}]}]`
		cluster      = `name: a, type: STATIC, load_assignment: {cluster_name: a, ` + content + `}`
	)
	for wrapped, plain := range map[string]string{
		"version_info: '0'\nresources:\n- {" + ofCluster + cluster + "}\n- {" + ofCluster + "name: b, type: EDS}\n": "clusters:\n- {" + cluster + "}\n- {name: b, type: EDS}\n",
		"{" + ofCluster + cluster + "}": "clusters: [{" + cluster + "}]",
		"clusters: [{" + ofCluster + strings.Replace(cluster, "{", "{"+ofAssignment, 1) + "}]": "clusters: [{" + cluster + "}]",
		"{" + ofAssignment + content + "}":              content,
		"resources: [{" + ofAssignment + content + "}]": content,
		"resources: [{" + ofAssignment + "cluster_name: a, " + content + "}, {" + ofAssignment + "clusterName: b, named_endpoints: {}, " + content + "}]": "clusters: [{" + cluster + "}, {" + strings.NewReplacer("name: a", "name: b").Replace(cluster) + "}]",
		`{"versionInfo": "0", "typeUrl": "x", "nonce": "1", "resources": [{` + ofAssignment + content + `}]}`:                                             content,
	} {
		got, err := LoadFrom(strings.NewReader(wrapped), "x")
		if err != nil {
			t.Errorf("%s\n%v", wrapped, err)
			continue
		}
		want, err := LoadFrom(strings.NewReader(plain), "x")
		if err != nil {
			t.Fatal(err)
		}
		if !proto.Equal(got.Endpoints, want.Endpoints) || !slices.EqualFunc(got.Clusters, want.Clusters, func(a, b *clusterv3.Cluster) bool { return proto.Equal(a, b) }) {
			t.Errorf("%s\nis %v %v\nwant %v %v", wrapped, got.Endpoints, got.Clusters, want.Endpoints, want.Clusters)
		}
	}
}
