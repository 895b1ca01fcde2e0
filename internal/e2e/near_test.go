package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/understudy-lb/understudy/internal/testing/adstest"
)

// zonesByEDS serves a cluster with one endpoint in zone a and two in zone b. Each endpoint of a
// zone z in hints has the hint to serve the clients of zone hints[z].
func zonesByEDS(t *testing.T, hints map[string]string) string {
	c := &endpointv3.ClusterLoadAssignment{ClusterName: "shop"}
	for zone, n := range map[string]int{"a": 1, "b": 2} {
		l := &endpointv3.LocalityLbEndpoints{Locality: &corev3.Locality{Zone: zone}, LoadBalancingWeight: wrapperspb.UInt32(1)}
		for range n {
			e := adstest.Cluster("", startServer(t, zone, nil).address).GetEndpoints()[0].GetLbEndpoints()[0]
			if hint, ok := hints[zone]; ok {
				list, _ := structpb.NewStruct(map[string]any{"forZones": []any{hint}})
				e.Metadata = &corev3.Metadata{FilterMetadata: map[string]*structpb.Struct{"understudy.dev": list}}
			}
			l.LbEndpoints = append(l.LbEndpoints, e)
		}
		c.Endpoints = append(c.Endpoints, l)
	}
	return startManager(t, func(s *adstest.Stream) error { return errors.Join(s.Respond("1", "n", c), s.Drain()) })
}

// The client's zone comes from a bootstrap file or from the target. Hints select endpoints
// independently of their zones.
func TestNearFirstByEDS(t *testing.T) {
	for _, test := range []struct {
		name, query string
		hints       map[string]string
		want        []string
	}{
		{"the bootstrap's zone", "prefer=zone", nil, []string{"b"}},
		{"the target's zone overrides the bootstrap's", "prefer=zone&zone=a", nil, []string{"a"}},
		{"hints of the source", "prefer=hints", map[string]string{"a": "b", "b": "a"}, []string{"a"}},
		{"hints for others", "prefer=hints", map[string]string{"a": "c", "b": "c"}, []string{"a", "b"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), eventTimeout)
			defer cancel()
			t.Setenv("GRPC_XDS_BOOTSTRAP_CONFIG", fmt.Sprintf(`{"xds_servers": [{"server_uri": %q, "channel_creds": [{"type": "insecure"}], "server_features": ["xds_v3"]}],
				"node": {"id": "n", "locality": {"zone": "b"}}}`, zonesByEDS(t, test.hints)))
			cc := newClient(t, "eds:///shop?"+test.query)
			seen := make(map[string]bool)
			for _, zone := range test.want {
				awaitName(ctx, t, cc, zone)
			}
			for range 100 {
				got, err := who(ctx, cc)
				if err != nil {
					t.Fatal(err)
				}
				seen[got.name] = true
			}
			if got := slices.Sorted(maps.Keys(seen)); !slices.Equal(got, test.want) {
				t.Errorf("zones %v get calls, want %v", got, test.want)
			}
		})
	}
}

// All calls stay in the client's zone. If the zone fails, they go to the other zones of its region.
// They return when it works again.
func TestNearFirstOnRealSockets(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), eventTimeout)
	defer cancel()
	zones := map[string][]*server{"a": nil, "b": nil, "c": nil}
	text := "cluster_name: shop\nendpoints:\n"
	for _, zone := range []string{"c", "b", "a"} {
		region := map[string]string{"a": "r", "b": "r", "c": "s"}[zone]
		text += fmt.Sprintf("- locality: {region: %s, zone: %s}\n  load_balancing_weight: 1\n  lb_endpoints:\n", region, zone)
		for range map[string]int{"a": 3, "b": 2, "c": 1}[zone] {
			s := startServer(t, zone, nil)
			zones[zone] = append(zones[zone], s)
			host, port, _ := net.SplitHostPort(s.address)
			text += fmt.Sprintf("  - endpoint: {address: {socket_address: {address: %s, port_value: %s}}}\n", host, port)
		}
	}
	path := filepath.Join(t.TempDir(), "shop.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("UNDERSTUDY_REGION", "r")
	cc := newClient(t, "file://"+path+"?prefer=zone&zone=a")
	wantAllCallsIn := func(zone string) {
		t.Helper()
		awaitName(ctx, t, cc, zone)
		for range 200 {
			if got, err := who(ctx, cc); err != nil || got.name != zone {
				t.Fatalf("%+v, %v; want all calls in zone %s", got, err, zone)
			}
		}
	}
	wantAllCallsIn("a")
	for _, s := range zones["a"] {
		s.grpc.Stop()
	}
	wantAllCallsIn("b")
	for _, s := range zones["b"] {
		s.grpc.Stop()
	}
	wantAllCallsIn("c")
	for _, s := range zones["a"] {
		startServerOn(t, "a", s.address, nil)
	}
	wantAllCallsIn("a")
}
