package adsclient

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/understudy-lb/understudy/internal/testing/adstest"
)

func exchange(s *adstest.Stream, r *discoveryv3.DiscoveryResponse) *discoveryv3.DiscoveryRequest {
	if s.Send(r) != nil {
		return nil
	}
	request, err := s.Recv()
	if err != nil {
		return nil
	}
	return request
}

func response(version string, resources ...*anypb.Any) *discoveryv3.DiscoveryResponse {
	return &discoveryv3.DiscoveryResponse{TypeUrl: Endpoints.url, VersionInfo: version, Nonce: "nonce " + version, Resources: resources}
}

func weightless(name string) *endpointv3.ClusterLoadAssignment {
	c := adstest.Cluster(name, "10.0.0.9:1")
	c.Endpoints[0].LbEndpoints[0].LoadBalancingWeight = wrapperspb.UInt32(0)
	return c
}

func TestRejectedResourceDoesNotAffectOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var nack, ack *discoveryv3.DiscoveryRequest
		m := startManager(t, func(s *adstest.Stream) error {
			for names := 0; names < 3; {
				r, err := s.Recv()
				if err != nil {
					return err
				}
				names = len(r.GetResourceNames())
			}
			exchange(s, response("1", adstest.Any(adstest.Cluster("a", "10.0.0.1:1"))))
			nack = exchange(s, response("2",
				&anypb.Any{TypeUrl: Endpoints.url, Value: []byte("garbage")},
				adstest.Any(weightless("a")),
				&anypb.Any{TypeUrl: "type.googleapis.com/unknown"},
				adstest.Any(weightless("b")),
				adstest.Any(adstest.Cluster("")),
				nil,
				adstest.Any(adstest.Cluster("c", "10.0.0.1:1", "10.0.0.2:1"))))
			ack = exchange(s, response("3", adstest.Any(adstest.Cluster("b", "10.0.0.1:1"))))
			return s.Drain()
		})
		a, _ := m.watch("a")
		b, _ := m.watch("b")
		c, _ := m.watch("c")
		expect(t, "a", a.take(), "a:1")
		expect(t, "b", b.take(), `cluster "b" from passthrough:///`+t.Name()+`: endpoints[0].lb_endpoints[0].load_balancing_weight: weight is 0`, "b:1")
		expect(t, "c", c.take(), "c:2")
		if nack.GetVersionInfo() != "1" || nack.GetResponseNonce() != "nonce 2" || !slices.Equal(nack.GetResourceNames(), []string{"a", "b", "c"}) {
			t.Errorf("NACK = %v, want version 1 and nonce 2", nack)
		}
		for _, want := range []string{
			"resource 0: not a ClusterLoadAssignment", "a: endpoints[0].lb_endpoints[0].load_balancing_weight: weight is 0",
			`resource 2: type "type.googleapis.com/unknown"`, "b: endpoints[0]", "resource 4: cluster_name is empty", `resource 5: type ""`,
		} {
			if !strings.Contains(nack.GetErrorDetail().GetMessage(), want) {
				t.Errorf("NACK message = %q, want %q in it", nack.GetErrorDetail().GetMessage(), want)
			}
		}
		if nack.GetNode() != nil || ack.GetNode() != nil {
			t.Error("the node was sent again after the first request")
		}
		if ack.GetVersionInfo() != "3" || ack.GetResponseNonce() != "nonce 3" || ack.GetErrorDetail() != nil {
			t.Errorf("ACK = %v, want version and nonce 3", ack)
		}
	})
}

func TestWrappedResource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := startManager(t, func(s *adstest.Stream) error {
			s.Recv()
			for _, version := range []string{"1", "2"} {
				s.Send(response(version, adstest.Any(&discoveryv3.Resource{Name: "a", Ttl: durationpb.New(time.Second), Resource: adstest.Any(adstest.Cluster("a", "10.0.0.1:1"))})))
			}
			return s.Drain()
		})
		const ttl = "TestWrappedResource gives resources a time to live, which has no effect"
		before := logged.Count(ttl)
		a, _ := m.watch("a")
		expect(t, "a", a.take(), "a:1")
		if got := logged.Count(ttl) - before; got != 1 {
			t.Errorf("the time to live was logged %d times, want once", got)
		}
		sleep(time.Minute)
		expect(t, "a", a.take())
	})
}
