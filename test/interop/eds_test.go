package interop

import (
	"net"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	cachev3 "github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	serverv3 "github.com/envoyproxy/go-control-plane/pkg/server/v3"
	"google.golang.org/grpc"

	"github.com/understudy-lb/understudy/discovery/eds"
	"github.com/understudy-lb/understudy/internal/testing/adstest"
	"github.com/understudy-lb/understudy/internal/testing/given"
)

func managementServer(t *testing.T, cache cachev3.Cache) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	discoveryv3.RegisterAggregatedDiscoveryServiceServer(server, serverv3.NewServer(t.Context(), cache, nil))
	go server.Serve(listener)
	t.Cleanup(server.Stop)
	return listener.Addr().String()
}

func TestOurChannelAgainstSnapshotServer(t *testing.T) {
	t.Parallel()
	a, b := backend(t), backend(t)
	cache := cachev3.NewSnapshotCache(false, cachev3.IDHash{}, nil)
	set := func(version string, cluster *endpointv3.ClusterLoadAssignment) {
		snapshot, err := cachev3.NewSnapshot(version, map[resourcev3.Type][]types.Resource{
			resourcev3.EndpointType: {cluster, adstest.Cluster("another", "127.0.0.1:1")},
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := cache.SetSnapshot(t.Context(), "interop", snapshot); err != nil {
			t.Fatal(err)
		}
	}
	set("1", adstest.Cluster("payments", a))
	source := given.Builder(eds.Scheme, given.Sources(eds.WithNode(&corev3.Node{Id: "interop"})))
	conn := dial(t, "eds://"+managementServer(t, cache)+"/payments", grpc.WithResolvers(source))
	callUntil(t, conn, a)
	bad := adstest.Cluster("payments", b)
	bad.Endpoints[0].Priority = 7
	set("2", bad) // the client rejects this version
	if got := callN(t, conn, 100); got[a] != 100 {
		t.Errorf("100 calls after a bad snapshot were answered by %v, want %s", got, a)
	}
	set("3", adstest.Cluster("payments", b))
	callUntil(t, conn, b)
}
