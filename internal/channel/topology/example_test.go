package topology_test

import (
	"fmt"

	"google.golang.org/grpc/experimental/balancer/weight"
	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/channel/topology"
	"github.com/understudy-lb/understudy/internal/lb/hierarchy"
)

func ExampleTranslator() {
	var translator topology.Translator
	tree, err := translator.Translate(&discovery.Answer{Priorities: []discovery.Priority{
		{Localities: []discovery.Locality{{Region: "us-east", Zone: "a", Endpoints: []discovery.Endpoint{
			{Addresses: []string{"192.0.2.1:443"}, Weight: 3},
			{Addresses: []string{"192.0.2.2:443"}},
			{Addresses: []string{"192.0.2.3:443"}, Health: discovery.Draining},
		}}}},
		{Localities: []discovery.Locality{{Region: "eu-west", Endpoints: []discovery.Endpoint{
			{Addresses: []string{"198.51.100.1:443"}},
		}}}},
	}})
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

// Two targets, each with its own resolver, become the two priorities of one tree.
func ExamplePolicies_Combine() {
	var policies topology.Policies
	tree := policies.Combine(
		topology.Plain("us-east", "", []resolver.Endpoint{{Addresses: []resolver.Address{{Addr: "192.0.2.1:443"}}}}),
		topology.Plain("eu-west", "", []resolver.Endpoint{{Addresses: []resolver.Address{{Addr: "198.51.100.1:443"}}}}),
	)
	for _, e := range tree.Endpoints {
		fmt.Println(e.Addresses[0].Addr, hierarchy.Path(e))
	}
	// Output:
	// 192.0.2.1:443 [us-east /]
	// 198.51.100.1:443 [eu-west /]
}

func ExampleLocalityName() {
	fmt.Println(topology.LocalityName("us-east", "a", ""))
	fmt.Println(topology.LocalityName("", "", ""))
	// Output:
	// us-east/a
	// /
}
