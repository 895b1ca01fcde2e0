package interop

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	_ "github.com/cncf/xds/go/xds/type/v3"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/round_robin/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/wrr_locality/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	cachev3 "github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/serviceconfig"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/understudy-lb/understudy/internal/testing/adstest"
	"github.com/understudy-lb/understudy/policy/weightedroundrobin"
)

func init() { balancer.Register(recordingBuilder{balancer.Get(weightedroundrobin.Name)}) }

// lastPicker is the last READY picker that weighted_round_robin has published.
var lastPicker atomic.Pointer[balancer.Picker]

// recordingBuilder builds weighted_round_robin policies that store their pickers in lastPicker.
type recordingBuilder struct{ balancer.Builder }

func (r recordingBuilder) Build(cc balancer.ClientConn, opts balancer.BuildOptions) balancer.Balancer {
	return r.Builder.Build(recordingConn{cc}, opts)
}

func (r recordingBuilder) ParseConfig(text json.RawMessage) (serviceconfig.LoadBalancingConfig, error) {
	return r.Builder.(balancer.ConfigParser).ParseConfig(text)
}

type recordingConn struct{ balancer.ClientConn }

func (c recordingConn) UpdateState(s balancer.State) {
	if s.ConnectivityState == connectivity.Ready {
		lastPicker.Store(&s.Picker)
	}
	c.ClientConn.UpdateState(s)
}

func documentedCluster(t *testing.T) *clusterv3.Cluster {
	t.Helper()
	page, err := os.ReadFile("../../docs/xds.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(page), "<!-- tested by test/interop/custompolicy_test.go -->\n```json\n")
	snippet, _, closed := strings.Cut(rest, "```")
	if !found || !closed {
		t.Fatal("docs/xds.md has no snippet that is marked as tested here")
	}
	cluster := new(clusterv3.Cluster)
	if err := protojson.Unmarshal([]byte(snippet), cluster); err != nil {
		t.Fatal(err)
	}
	return cluster
}

func listener(t *testing.T, cluster string) *listenerv3.Listener {
	t.Helper()
	l := new(listenerv3.Listener)
	text := fmt.Sprintf(`{"name": %[1]q, "apiListener": {"apiListener": {
		"@type": "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
		"routeConfig": {"name": "r", "virtualHosts": [{"name": "v", "domains": ["*"],
			"routes": [{"match": {"prefix": ""}, "route": {"cluster": %[1]q}}]}]},
		"httpFilters": [{"name": "router", "typedConfig": {"@type": "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router"}}]
	}}}`, cluster)
	if err := protojson.Unmarshal([]byte(text), l); err != nil {
		t.Fatal(err)
	}
	return l
}

func linearCache(t *testing.T, resources ...types.Resource) cachev3.Cache {
	t.Helper()
	mux := &cachev3.MuxCache{
		Classify:      func(r *cachev3.Request) string { return r.GetTypeUrl() },
		ClassifyDelta: func(r *cachev3.DeltaRequest) string { return r.GetTypeUrl() },
		Caches:        make(map[string]cachev3.Cache),
	}
	for _, r := range resources {
		typeURL := "type.googleapis.com/" + string(proto.MessageName(r))
		name := cachev3.GetResourceName(r)
		mux.Caches[typeURL] = cachev3.NewLinearCache(typeURL, cachev3.WithInitialResources(map[string]types.Resource{name: r}))
	}
	return mux
}

// gRPC-Go's own xDS client uses our policy. Each endpoint must get its share of the calls. The
// client converts weights to UQ1.31 fractions, so the shares are exact only to 1e-5.
func TestOurPolicyInStockChannel(t *testing.T) {
	weights := [][]uint32{{2, 1}, {5, 3}}          // weights of the endpoints, by locality
	localities := []uint32{3, 1}                   // weights of the localities
	want := []float64{0.09375, 0.15625, 0.25, 0.5} // shares of the endpoints, sorted
	cluster := &endpointv3.ClusterLoadAssignment{ClusterName: "payments"}
	var backends []string
	for i, ws := range weights {
		locality := adstest.Cluster("", backend(t), backend(t)).GetEndpoints()[0]
		locality.Locality = &corev3.Locality{Zone: fmt.Sprint("z", i)}
		locality.LoadBalancingWeight = wrapperspb.UInt32(localities[i])
		for j, lb := range locality.GetLbEndpoints() {
			lb.LoadBalancingWeight = wrapperspb.UInt32(ws[j])
			address := lb.GetEndpoint().GetAddress().GetSocketAddress()
			backends = append(backends, fmt.Sprintf("%s:%d", address.GetAddress(), address.GetPortValue()))
		}
		cluster.Endpoints = append(cluster.Endpoints, locality)
	}
	address := managementServer(t, linearCache(t, listener(t, "payments"), documentedCluster(t), cluster))
	conn := stockChannel(t, address, "payments")
	for _, b := range backends {
		callUntil(t, conn, b)
	}

	const picks = 1_000_000
	counts := make(map[balancer.SubConn]int)
	picker := *lastPicker.Load()
	for range picks {
		r, err := picker.Pick(balancer.PickInfo{Ctx: context.Background()})
		if err != nil {
			t.Fatal(err)
		}
		counts[r.SubConn]++
		if r.Done != nil {
			r.Done(balancer.DoneInfo{})
		}
	}
	var shares []float64
	for _, n := range counts {
		shares = append(shares, float64(n)/picks)
	}
	slices.Sort(shares)
	if !slices.EqualFunc(shares, want, func(a, b float64) bool { return math.Abs(a-b) <= 1e-5 }) {
		t.Errorf("the shares are %v, want %v", shares, want)
	}
}
