package topology_test

import (
	"fmt"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/grpc/experimental/balancer/weight"
	"google.golang.org/grpc/resolver"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/understudy-lb/understudy/hierarchy"
	"github.com/understudy-lb/understudy/topology"
)

// A control plane sends a cluster with two priorities.
func ExampleTranslator() {
	var cluster endpointv3.ClusterLoadAssignment
	err := protojson.Unmarshal([]byte(`{
	  "clusterName": "checkout",
	  "endpoints": [{
	    "locality": {"region": "us-east", "zone": "a"}, "loadBalancingWeight": 1,
	    "lbEndpoints": [
	      {"endpoint": {"address": {"socketAddress": {"address": "192.0.2.1", "portValue": 443}}}, "loadBalancingWeight": 3},
	      {"endpoint": {"address": {"socketAddress": {"address": "192.0.2.2", "portValue": 443}}}}]
	  }, {
	    "locality": {"region": "eu-west"}, "loadBalancingWeight": 1, "priority": 1,
	    "lbEndpoints": [
	      {"endpoint": {"address": {"socketAddress": {"address": "198.51.100.1", "portValue": 443}}}}]
	  }]
	}`), &cluster)
	if err != nil {
		fmt.Println(err)
		return
	}
	var translator topology.Translator
	tree, err := translator.Translate(&cluster)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, e := range tree.Endpoints {
		fmt.Println(e.Addresses[0].Addr, hierarchy.Path(e), weight.FromEndpoint(e).Weight)
	}
	// Output:
	// 192.0.2.1:443 [child0 us-east/a] 3
	// 192.0.2.2:443 [child0 us-east/a] 1
	// 198.51.100.1:443 [child1 eu-west] 1
}

// Two targets, each with a resolver of its own, one to fail over to the other.
func ExampleTargets() {
	tree := topology.Targets([]topology.Part{
		{Name: "us-east", Endpoints: []resolver.Endpoint{{Addresses: []resolver.Address{{Addr: "192.0.2.1:443"}}}}},
		{Name: "eu-west", Endpoints: []resolver.Endpoint{{Addresses: []resolver.Address{{Addr: "198.51.100.1:443"}}}}},
	})
	for _, e := range tree.Endpoints {
		fmt.Println(e.Addresses[0].Addr, hierarchy.Path(e))
	}
	// Output:
	// 192.0.2.1:443 [us-east /]
	// 198.51.100.1:443 [eu-west /]
}

// A locality's name shows in the debug page, in metrics and in messages.
func ExampleLocalityName() {
	fmt.Println(topology.LocalityName(&corev3.Locality{Region: "us-east", Zone: "a"}))
	fmt.Println(topology.LocalityName(nil))
	// Output:
	// us-east/a
	// /
}
