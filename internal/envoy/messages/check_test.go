package messages

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/understudy-lb/understudy/internal/channel/topology"
)

func withAddress(address *corev3.Address) *endpointv3.ClusterLoadAssignment {
	c := cluster(newLocality(0, "us", "host"))
	c.Endpoints[0].LbEndpoints[0].GetEndpoint().Address = address
	return c
}

func withChange(change func(*endpointv3.ClusterLoadAssignment)) *endpointv3.ClusterLoadAssignment {
	c := cluster(newLocality(0, "us/a", "10.0.0.1"))
	change(c)
	return c
}

func TestRejected(t *testing.T) {
	socketAddress := func(s *corev3.SocketAddress) *corev3.Address {
		return &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: s}}
	}
	const first = "endpoints[0].lb_endpoints[0]"
	const addr = first + ".endpoint.address"
	for _, test := range []struct {
		cluster *endpointv3.ClusterLoadAssignment
		want    string
	}{
		{cluster(newLocality(0, "us", "a*0")), first + ".load_balancing_weight: weight is 0, want at least 1"},
		{cluster(newLocality(0, "us", "a*4294967295", "b", "c")), "endpoints[0].lb_endpoints[1].load_balancing_weight: the weights of the endpoints of this locality sum to more than 4294967295"},
		{cluster(withWeight(4294967295, newLocality(0, "a")), newLocality(0, "b"), newLocality(0, "c")), "endpoints[1].load_balancing_weight: the weights of the localities of priority 0 sum to more than 4294967295"},
		{cluster(newLocality(0, "us/a", "a"), newLocality(0, "us/a", "b")), `endpoints[1].locality: locality "us/a" is already in priority 0, as endpoints[0]`},
		{cluster(newLocality(0, "us", "a", "a")), "endpoints[0].lb_endpoints[1].endpoint.address: address a:80 is already in " + first},
		{cluster(newLocality(0, "us", "::1"), newLocality(1, "eu", "0:0::0:1")), "endpoints[1].lb_endpoints[0].endpoint.address: address [::1]:80 is already in " + first},
		{withChange(func(c *endpointv3.ClusterLoadAssignment) {
			c.Endpoints[0].LbEndpoints[0].GetEndpoint().AdditionalAddresses = []*endpointv3.Endpoint_AdditionalAddress{{Address: socket("10.0.0.1", 80)}}
		}), first + ".endpoint.additional_addresses[0].address: address 10.0.0.1:80 is already in " + first},
		{cluster(newLocality(1, "us", "a")), "endpoints[0].priority: priority 1 is used, but priority 0 has no locality that gets traffic"},
		{cluster(newLocality(0, "us", "a"), newLocality(2, "eu", "b"), newLocality(2, "eu/c", "c")), "endpoints[1].priority: priority 2 is used, but priority 1 has no locality that gets traffic"},
		{cluster(newLocality(0, "us", "a"), withWeight(0, newLocality(1, "eu", "b")), newLocality(2, "as", "c")), "endpoints[2].priority: priority 2 is used, but priority 1 has"},
		{withChange(func(c *endpointv3.ClusterLoadAssignment) { c.Endpoints[0].Locality = nil }), "endpoints[0]: locality is missing"},
		{withChange(func(c *endpointv3.ClusterLoadAssignment) { c.ClusterName = "" }), "cluster_name: cluster_name is empty"},
		{withChange(func(c *endpointv3.ClusterLoadAssignment) { c.Endpoints[0].LbEndpoints[0].HostIdentifier = nil }), first + ": endpoint is missing"},
		{withChange(func(c *endpointv3.ClusterLoadAssignment) {
			c.Policy = &endpointv3.ClusterLoadAssignment_Policy{DropOverloads: []*endpointv3.ClusterLoadAssignment_Policy_DropOverload{{
				DropPercentage: &typev3.FractionalPercent{Denominator: 9},
			}}}
		}), "policy.drop_overloads[0].drop_percentage.denominator: denominator is 9, want HUNDRED, TEN_THOUSAND or MILLION"},
		{withAddress(nil), addr + ": neither socket_address nor pipe is given"},
		{withAddress(socketAddress(&corev3.SocketAddress{Address: "a"})), addr + ".socket_address: port_value is missing"},
		{withAddress(socketAddress(&corev3.SocketAddress{Address: "a", PortSpecifier: &corev3.SocketAddress_NamedPort{NamedPort: "http"}})), addr + ".socket_address.named_port: named_port is not supported"},
		{withAddress(socket("a", 0)), addr + ".socket_address.port_value: port_value is 0, want 1 to 65535"},
		{withAddress(socket("a", 65536)), addr + ".socket_address.port_value: port_value is 65536, want 1 to 65535"},
		{withAddress(&corev3.Address{Address: &corev3.Address_EnvoyInternalAddress{}}), addr + ": envoy_internal_address is not supported"},
		{withAddress(&corev3.Address{Address: &corev3.Address_Pipe{Pipe: &corev3.Pipe{}}}), addr + ".pipe.path: path is empty"},
	} {
		_, _, err := Read(test.cluster)
		if err == nil || !strings.HasPrefix(err.Error(), test.want) {
			t.Errorf("error = %v\nwant    %s", err, test.want)
			continue
		}
		if invalid, ok := errors.AsType[*Invalid](err); !ok || len(invalid.Problems) != 1 {
			t.Errorf("problems = %v, want one as an *Invalid", err)
		}
	}
}

// Unusual assignments are valid: a locality without traffic may contain duplicate addresses, a
// locality may be in several priorities, and weights may sum to the maximum.
func TestAccepted(t *testing.T) {
	for _, c := range []*endpointv3.ClusterLoadAssignment{
		cluster(newLocality(0, "us", "a"), withoutWeight(newLocality(0, "us", "a", "a"))),
		cluster(newLocality(0, "us", "a"), newLocality(1, "us", "b")),
		cluster(withWeight(4294967294, newLocality(0, "us", "a*4294967294", "b")), newLocality(0, "eu")),
		withAddress(socket("my_host.example.com.", 65535)),
	} {
		if _, err := readAndTranslate(new(topology.Translator), c); err != nil {
			t.Errorf("%v: %v", c, err)
		}
	}
}

// "The gRPC client must in general ignore any fields it does not support" (gRFC A27).
func TestIgnoredFieldsAreNoted(t *testing.T) {
	for _, test := range []struct {
		cluster *endpointv3.ClusterLoadAssignment
		want    string
	}{
		{withChange(func(c *endpointv3.ClusterLoadAssignment) {
			c.Policy = &endpointv3.ClusterLoadAssignment_Policy{OverprovisioningFactor: wrapperspb.UInt32(0)}
		}), "policy.overprovisioning_factor: overprovisioning_factor has no effect"},
		{withChange(func(c *endpointv3.ClusterLoadAssignment) {
			c.Policy = &endpointv3.ClusterLoadAssignment_Policy{WeightedPriorityHealth: true}
		}), "policy.weighted_priority_health: weighted_priority_health has no effect"},
		{withChange(func(c *endpointv3.ClusterLoadAssignment) {
			c.Policy = &endpointv3.ClusterLoadAssignment_Policy{EndpointStaleAfter: durationpb.New(-time.Second)}
		}), "policy.endpoint_stale_after: endpoint_stale_after has no effect"},
		{withChange(func(c *endpointv3.ClusterLoadAssignment) {
			c.NamedEndpoints = map[string]*endpointv3.Endpoint{"a\nb": {HealthCheckConfig: &endpointv3.Endpoint_HealthCheckConfig{PortValue: 70000}}}
		}), "named_endpoints: named_endpoints has no effect"},
		{withChange(func(c *endpointv3.ClusterLoadAssignment) {
			c.Endpoints[0].LbConfig = &endpointv3.LocalityLbEndpoints_LoadBalancerEndpoints{LoadBalancerEndpoints: &endpointv3.LocalityLbEndpoints_LbEndpointList{}}
		}), "endpoints[0]: load_balancer_endpoints and leds_cluster_locality_config have no effect, want lb_endpoints"},
		// An endpoint that is not healthy "will be ignored".
		{withChange(func(c *endpointv3.ClusterLoadAssignment) {
			bad := &endpointv3.LbEndpoint{HealthStatus: corev3.HealthStatus_UNHEALTHY, HostIdentifier: &endpointv3.LbEndpoint_EndpointName{EndpointName: "x"}}
			c.Endpoints[0].LbEndpoints = append(c.Endpoints[0].LbEndpoints, bad)
		}), ""},
		{withChange(func(c *endpointv3.ClusterLoadAssignment) {
			bad := lbEndpoint("a b")
			bad.HealthStatus = corev3.HealthStatus_DRAINING
			c.Endpoints[0].LbEndpoints = append(c.Endpoints[0].LbEndpoints, bad)
		}), ""},
		{cluster(newLocality(0, "us", "a"), withoutWeight(newLocality(0, "eu", "b*0"))), `endpoints[1]: locality "eu" of priority 0 has no weight and gets no traffic`},
		{cluster(newLocality(0, "us", "a"), withWeight(0, newLocality(7, "eu", "a b", "", "c*4294967295", "c"))), `endpoints[1]: locality "eu" of priority 7 has weight 0 and gets no traffic`},
		{withChange(func(c *endpointv3.ClusterLoadAssignment) {
			c.Endpoints = append(c.Endpoints, &endpointv3.LocalityLbEndpoints{LbEndpoints: []*endpointv3.LbEndpoint{{}}})
		}), `endpoints[1]: locality "/" of priority 0 has no weight and gets no traffic`},
	} {
		tree, err := readAndTranslate(new(topology.Translator), test.cluster)
		if err != nil || len(tree.Endpoints) != 1 {
			t.Errorf("%v: %d endpoints and %v, want the good one", test.cluster, len(tree.Endpoints), err)
		}
		if got := fmt.Sprint(tree.notes); !strings.HasPrefix(got, "["+test.want) || len(tree.notes) > 1 || test.want == "" && len(tree.notes) > 0 {
			t.Errorf("notes = %v, want %q", got, test.want)
		}
	}
}

// An unhealthy endpoint must be rejected if it is a duplicate, has weight 0, or makes the sum of
// weights too large, as in gRPC.
func TestUnhealthyEndpointsAreValidated(t *testing.T) {
	for _, endpoint := range []*endpointv3.LbEndpoint{lbEndpoint("10.0.0.1"), lbEndpoint("x*0"), lbEndpoint("x*4294967295")} {
		endpoint.HealthStatus = corev3.HealthStatus_UNHEALTHY
		c := withChange(func(c *endpointv3.ClusterLoadAssignment) {
			c.Endpoints[0].LbEndpoints = append(c.Endpoints[0].LbEndpoints, endpoint)
		})
		if _, _, err := Read(c); err == nil {
			t.Errorf("Validate accepted %v next to 10.0.0.1", endpoint)
		}
	}
}
