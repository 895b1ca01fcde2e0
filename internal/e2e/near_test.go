package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
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
