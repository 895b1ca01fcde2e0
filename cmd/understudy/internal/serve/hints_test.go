package serve

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/peer"

	"github.com/understudy-lb/understudy"
)

func newTestBackend(t *testing.T) (port string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	server := grpc.NewServer()
	healthpb.RegisterHealthServer(server, health.NewServer())
	go server.Serve(listener)
	t.Cleanup(server.Stop)
	_, port, err = net.SplitHostPort(listener.Addr().String())
	must(t, err)
	return port
}

// serve sends the hints of endpoints to clients as metadata. A client prefers the endpoint whose
// hints name its zone or node.
func TestClientUsesHints(t *testing.T) {
	zoneA, zoneB := newTestBackend(t), newTestBackend(t)
	file := filepath.Join(t.TempDir(), "shop.yaml")
	text := "endpoints:\n- locality: {zone: a}\n  loadBalancingWeight: 1\n  lbEndpoints:\n"
	for _, e := range []struct{ port, hints string }{{zoneA, "forZones: [a], forNodes: [n1, n2]"}, {zoneB, "forZones: [b], forNodes: [n3]"}} {
		text += fmt.Sprintf("  - endpoint: {address: {socketAddress: {address: 127.0.0.1, portValue: %s}}}\n    metadata: {filterMetadata: {understudy.dev: {%s}}}\n", e.port, e.hints)
	}
	write(t, file, text)
	s, _ := start(t, Options{Paths: []string{file}})
	t.Setenv("GRPC_XDS_BOOTSTRAP_CONFIG", fmt.Sprintf(`{"xds_servers": [{"server_uri": %q, "channel_creds": [{"type": "insecure"}], "server_features": ["xds_v3"]}], "node": {"id": "n"}}`, s.Addr()))
	for query, want := range map[string]string{
		"prefer=hints&zone=a": zoneA, "prefer=hints&zone=b": zoneB, "prefer=hints&zone=a&node=n3": zoneB, "prefer=hints&node=n2": zoneA,
	} {
		conn, err := understudy.NewClient("eds:///shop?"+query, understudy.Options{}, grpc.WithTransportCredentials(insecure.NewCredentials()))
		must(t, err)
		ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
		for i := range 20 {
			var server peer.Peer
			_, err := healthpb.NewHealthClient(conn).Check(ctx, &healthpb.HealthCheckRequest{}, grpc.Peer(&server), grpc.WaitForReady(true))
			must(t, err)
			if _, port, _ := net.SplitHostPort(server.Addr.String()); port != want {
				t.Errorf("%s: call %d goes to port %s, want %s", query, i, port, want)
				break
			}
		}
		cancel()
		must(t, conn.Close())
	}
}
