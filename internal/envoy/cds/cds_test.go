package cds

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/understudy-lb/understudy/internal/envoy/messages"
)

func parse(t *testing.T, text string) *clusterv3.Cluster {
	t.Helper()
	c := new(clusterv3.Cluster)
	if err := protojson.Unmarshal([]byte(text), c); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return c
}

const (
	address    = `{"socketAddress":{"address":"backup.example.com","portValue":443}}`
	endpoint   = `{"endpoint":{"address":` + address + `}}`
	assignment = `"loadAssignment":{"endpoints":[{"locality":{},"loadBalancingWeight":1,"lbEndpoints":[` + endpoint + `]}]}`
	wrapped    = `{"name":"x","typedConfig":{"@type":"type.googleapis.com/`
	aggregate  = `"clusterType":{"name":"envoy.clusters.aggregate","typedConfig":{"@type":"type.googleapis.com/envoy.extensions.clusters.aggregate.v3.ClusterConfig","clusters":["b","c"]}}`
)

func TestReadCluster(t *testing.T) {
	for text, want := range map[string]string{
		`{"name":"a","type":"EDS"}`: "kind 3 service a",
		`{"name":"a","type":"EDS","edsClusterConfig":{"edsConfig":{"ads":{}}}}`:                                              "kind 3 service a",
		`{"name":"a","type":"EDS","edsClusterConfig":{"serviceName":"s"}}`:                                                   "kind 3 service s",
		`{"name":"a","type":"LOGICAL_DNS",` + assignment + `}`:                                                               "kind 2 host backup.example.com:443",
		`{"name":"a","type":"STRICT_DNS",` + assignment + `}`:                                                                "kind 1 assignment a 1",
		`{"name":"a",` + assignment + `}`:                                                                                    "kind 0 assignment a 1",
		`{"name":"a","loadAssignment":{"clusterName":"other"}}`:                                                              "kind 0 assignment other 0",
		`{"name":"a",` + aggregate + `}`:                                                                                     "kind 4 children b,c",
		`{"name":"a",` + aggregate + `,"lbPolicy":"CLUSTER_PROVIDED"}`:                                                       "kind 4 children b,c",
		`{"name":"a","type":"EDS","loadBalancingPolicy":{"policies":[` + weighted + `]},"lbPolicy":"MAGLEV"}`:                "kind 3 service a",
		`{"name":"a","type":"EDS","loadBalancingPolicy":{"policies":[` + unknown + `,` + locality(roundRobinPolicy) + `]}}`:  "kind 3 service a",
		`{"name":"a","type":"EDS","connectTimeout":"1s","outlierDetection":{},"circuitBreakers":{},"lrsServer":{"self":{}}}`: "kind 3 service a outliers notes circuit_breakers,lrs_server",
		`{"name":"a","type":"EDS","outlierDetection":{"consecutive5xx":5,"failurePercentageThreshold":50}}`:                  "kind 3 service a outliers notes outlier_detection.failure_percentage_threshold,outlier_detection.consecutive_5xx",
		`{"name":"a",` + aggregate + `,"outlierDetection":{"consecutive5xx":5}}`:                                             "kind 4 children b,c notes outlier_detection",
	} {
		from := parse(t, text)
		before := proto.Clone(from)
		c, err := Read(from)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if !proto.Equal(from, before) {
			t.Errorf("%s was modified", text)
		}
		got := fmt.Sprintf("kind %d", c.Kind)
		if c.Service != "" {
			got += " service " + c.Service
		}
		if c.Host != "" {
			got += " host " + c.Host
		}
		if c.Assignment != nil {
			got += fmt.Sprintf(" assignment %s %d", c.Assignment.GetClusterName(), len(c.Assignment.GetEndpoints()))
		}
		if c.Children != nil {
			got += " children " + strings.Join(c.Children, ",")
		}
		if c.OutlierDetection != nil {
			got += " outliers"
		}
		var paths []string
		for _, n := range c.Notes {
			paths = append(paths, n.Path)
		}
		if paths != nil {
			got += " notes " + strings.Join(paths, ",")
		}
		if got != want || c.Name != "a" {
			t.Errorf("%s\ngot %s, want %s", text, got, want)
		}
	}
}

var (
	weighted         = wrapped + `xds.type.v3.TypedStruct","typeUrl":"type.googleapis.com/understudy_weighted_round_robin","value":{}}`
	unknown          = wrapped + `xds.type.v3.TypedStruct","typeUrl":"type.googleapis.com/other","value":{}}`
	roundRobinPolicy = wrapped + `envoy.extensions.load_balancing_policies.round_robin.v3.RoundRobin"}`
)

func init() {
	for _, policy := range []*string{&weighted, &unknown, &roundRobinPolicy} {
		*policy = `{"typedExtensionConfig":` + *policy + `}}`
	}
}

func locality(policy string) string {
	return `{"typedExtensionConfig":` + wrapped + `envoy.extensions.load_balancing_policies.wrr_locality.v3.WrrLocality","endpointPickingPolicy":{"policies":[` + policy + `]}}}}`
}

func TestReadInvalidCluster(t *testing.T) {
	for text, want := range map[string]string{
		`{"type":"EDS"}`:                                                           "name: a cluster has no name",
		`{"name":"xdstp://a/b","type":"EDS"}`:                                      `name: "xdstp://a/b" is an xdstp: name, which is not supported`,
		`{"name":"a","type":"ORIGINAL_DST"}`:                                       "type: type ORIGINAL_DST is not supported, want STATIC, STRICT_DNS, LOGICAL_DNS, EDS, or cluster_type",
		`{"name":"a","clusterType":{"name":"envoy.clusters.redis"}}`:               `cluster_type.name: cluster_type "envoy.clusters.redis" is not supported, want STATIC`,
		`{"name":"a","clusterType":{"name":"envoy.clusters.aggregate"}}`:           "cluster_type.typed_config: want a envoy.extensions.clusters.aggregate.v3.ClusterConfig",
		`{"name":"a",` + strings.Replace(aggregate, `"b","c"`, ``, 1) + `}`:        "the aggregate cluster names no clusters",
		`{"name":"a",` + strings.Replace(aggregate, `"b"`, `""`, 1) + `}`:          "cluster_type.typed_config: a cluster has no name",
		`{"name":"a","type":"EDS","edsClusterConfig":{"edsConfig":{"path":"/x"}}}`: "eds_cluster_config.eds_config: endpoints by Path are not supported, want ads or self",
		`{"name":"a","type":"EDS","edsClusterConfig":{"serviceName":"xdstp:x"}}`:   "eds_cluster_config.service_name: ",
		`{"name":"a"}`: "load_assignment: load_assignment is missing",
		`{"name":"a",` + strings.Replace(assignment, "443", "0", 1) + `}`: "load_assignment.endpoints[0].lb_endpoints[0].endpoint.address.socket_address.port_value: port_value is 0",
		`{"name":"a","type":"LOGICAL_DNS"}`:                               "load_assignment: a LOGICAL_DNS cluster needs one locality with one endpoint",
		`{"name":"a","type":"LOGICAL_DNS","loadAssignment":{"endpoints":[{"lbEndpoints":[` + endpoint + `]},{"lbEndpoints":[` + endpoint + `]}]}}`: "needs one locality with one endpoint",
		`{"name":"a","type":"LOGICAL_DNS",` + strings.Replace(assignment, endpoint, endpoint+","+endpoint, 1) + `}`:                                "needs one locality with one endpoint",
		`{"name":"a","type":"LOGICAL_DNS",` + strings.Replace(assignment, address, `{"pipe":{"path":"/x"}}`, 1) + `}`:                              "no socket_address",
		`{"name":"a","type":"LOGICAL_DNS",` + strings.Replace(assignment, "backup", "//evil/", 1) + `}`:                                            `has "/", which is not allowed in a host name`,
		`{"name":"a","type":"LOGICAL_DNS",` + strings.Replace(assignment, "443", `443,"resolverName":"x"`, 1) + `}`:                                "resolver_name is not supported",
		`{"name":"a","type":"EDS","lbPolicy":"RING_HASH"}`:                                                                                         "lb_policy: lb_policy RING_HASH is not supported, want ROUND_ROBIN",
		`{"name":"a","type":"EDS","loadBalancingPolicy":{"policies":[` + unknown + `]}}`:                                                           "load_balancing_policy: none of the policies is supported (xds.type.v3.TypedStruct), want ROUND_ROBIN",
		`{"name":"a","type":"EDS","loadBalancingPolicy":{"policies":[` + locality(unknown) + `]}}`:                                                 "load_balancing_policy: none of",
		`{"name":"a","type":"EDS","outlierDetection":{"maxEjectionPercent":101}}`:                                                                  "outlier_detection.max_ejection_percent: max_ejection_percent is 101, want 0 to 100",
		`{"name":"a",` + aggregate + `,"outlierDetection":{"interval":"-1s"}}`:                                                                     "outlier_detection.interval: interval is -1s, want a duration that is not negative",
		`{"name":"a","type":"EDS","loadBalancingPolicy":{}}`:                                                                                       "load_balancing_policy: none of",
	} {
		_, err := Read(parse(t, text))
		invalid, ok := errors.AsType[*messages.Invalid](err)
		if !ok || !strings.Contains(err.Error(), want) || len(invalid.Problems) != 1 {
			t.Errorf("%s:\n%v, want %q", text, err, want)
		}
	}
}

func FuzzRead(f *testing.F) {
	for _, text := range []string{`{"name":"a",` + aggregate + `}`, `{"name":"a","type":"LOGICAL_DNS",` + assignment + `}`} {
		c := new(clusterv3.Cluster)
		if err := protojson.Unmarshal([]byte(text), c); err != nil {
			f.Fatal(err)
		}
		bytes, err := proto.Marshal(c)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(bytes)
	}
	f.Fuzz(func(t *testing.T, bytes []byte) {
		c := new(clusterv3.Cluster)
		if proto.Unmarshal(bytes, c) != nil {
			return
		}
		read, err := Read(c)
		if (err == nil) != (read != nil) || err != nil && strings.Contains(err.Error(), "\n") {
			t.Fatalf("%v, %v", read, err)
		}
	})
}
