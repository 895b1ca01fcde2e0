package topology_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"google.golang.org/grpc/experimental/balancer/weight"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/channel/topology"
	"github.com/understudy-lb/understudy/internal/lb/hierarchy"
	"github.com/understudy-lb/understudy/internal/testing/lbtest"
)

// A policy that must see all endpoints of a priority gets one list, in which an endpoint's weight is
// the product of its own and its locality's (gRFC A42). If a product exceeds 32 bits, all are
// divided.
func TestEndpointsOfPriorityAreInOneList(t *testing.T) {
	for _, test := range []struct {
		weight uint32 // of the first locality
		want   string
	}{
		{3, "a:6 b:3 c:2 d:1"},
		{math.MaxUint32 - 2, "a:4294967293 b:2147483646 c:1 d:1"},
	} {
		endpoint := func(name string, weight uint32) discovery.Endpoint {
			return discovery.Endpoint{Addresses: []string{name + ":1"}, Weight: weight}
		}
		answer := &discovery.Answer{Priorities: []discovery.Priority{
			{Localities: []discovery.Locality{
				{Region: "x", Weight: test.weight, Endpoints: []discovery.Endpoint{endpoint("a", 2), endpoint("b", 1)}},
				{Region: "y", Weight: 2, Endpoints: []discovery.Endpoint{endpoint("c", 1)}},
			}},
			{Localities: []discovery.Locality{{Region: "z", Weight: 1, Endpoints: []discovery.Endpoint{endpoint("d", 1)}}}},
		}}
		tree, err := (&topology.Translator{}).Translate(answer)
		if err != nil {
			t.Fatal(err)
		}
		update := join(t, topology.Settings{EndpointPolicy: `ring_hash_experimental{"requestHashHeader": "user"}`}, tree)
		var got []string
		localities := make(map[string]bool)
		for _, e := range update.Endpoints {
			got = append(got, fmt.Sprintf("%s:%d", e.Addresses[0].Addr[:1], weight.FromEndpoint(e).Weight))
			localities[hierarchy.Path(e)[1]] = true
		}
		if text := strings.Join(got, " "); text != test.want || len(localities) != 1 {
			t.Errorf("got %s in %v, want %s in one locality", text, localities, test.want)
		}
		if config := lbtest.JSON(update.Config()); strings.Count(config, `"targets":{"all":{"weight":1`) != 2 {
			t.Errorf("config %s\nwant one target for each priority", config)
		}
	}
}
