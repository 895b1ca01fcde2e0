package messages

import (
	"encoding/json"
	"strconv"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/grpc/experimental/balancer/weight"
	"google.golang.org/grpc/resolver"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/understudy-lb/understudy/internal/lb/hierarchy"
	"github.com/understudy-lb/understudy/internal/testing/adstest"
)

func cluster(localities ...*endpointv3.LocalityLbEndpoints) *endpointv3.ClusterLoadAssignment {
	return &endpointv3.ClusterLoadAssignment{ClusterName: "cluster", Endpoints: localities}
}

// newLocality returns a locality of weight 1. name is region/zone/sub_zone.
func newLocality(priority uint32, name string, endpoints ...string) *endpointv3.LocalityLbEndpoints {
	parts := append(strings.Split(name, "/"), "", "")
	l := &endpointv3.LocalityLbEndpoints{
		Locality:            &corev3.Locality{Region: parts[0], Zone: parts[1], SubZone: parts[2]},
		LoadBalancingWeight: wrapperspb.UInt32(1),
		Priority:            priority,
	}
	for _, e := range endpoints {
		l.LbEndpoints = append(l.LbEndpoints, lbEndpoint(e))
	}
	return l
}

func withWeight(weight uint32, l *endpointv3.LocalityLbEndpoints) *endpointv3.LocalityLbEndpoints {
	l.LoadBalancingWeight = wrapperspb.UInt32(weight)
	return l
}

func withoutWeight(l *endpointv3.LocalityLbEndpoints) *endpointv3.LocalityLbEndpoints {
	l.LoadBalancingWeight = nil
	return l
}

// lbEndpoint returns an endpoint with port 80. text is "host" or "host*weight".
func lbEndpoint(text string) *endpointv3.LbEndpoint {
	host, weight, weighted := strings.Cut(text, "*")
	lb := &endpointv3.LbEndpoint{HostIdentifier: &endpointv3.LbEndpoint_Endpoint{
		Endpoint: &endpointv3.Endpoint{Address: socket(host, 80)},
	}}
	if weighted {
		n, err := strconv.ParseUint(weight, 10, 32)
		if err != nil {
			panic(err)
		}
		lb.LoadBalancingWeight = wrapperspb.UInt32(uint32(n))
	}
	return lb
}

var socket = adstest.SocketAddress

func paths(endpoints []resolver.Endpoint) string {
	s := ""
	for _, e := range endpoints {
		p, _ := json.Marshal(hierarchy.Path(e))
		w, _ := json.Marshal(weight.FromEndpoint(e).Weight)
		s += e.Addresses[0].Addr + " " + string(p) + " " + string(w) + "\n"
	}
	return s
}
