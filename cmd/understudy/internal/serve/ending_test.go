package serve

import (
	"context"
	"log/slog"
	"net"
	"testing"
	"testing/synctest"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/test/bufconn"
)

func startInMemory(ctx context.Context, t *testing.T) (*grpc.Server, *grpc.ClientConn) {
	t.Helper()
	listener := bufconn.Listen(1 << 16)
	server := grpc.NewServer()
	discoveryv3.RegisterAggregatedDiscoveryServiceServer(server, &ads{ctx: ctx, clients: newTestClients(slog.New(slog.DiscardHandler)), resources: newResources(RoundRobin), responseTimeout: responseTimeout})
	healthpb.RegisterHealthServer(server, health.NewServer())
	go func() {
		if err := server.Serve(listener); err != nil {
			t.Error(err)
		}
	}()
	conn, err := grpc.NewClient("passthrough:///server", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }))
	must(t, err)
	return server, conn
}

// A stream of ADS ends with the server. A client that watches the health ends after stopTimeout.
func TestHealthWatchEndsWithServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		server, conn := startInMemory(ctx, t)
		defer conn.Close()
		watch, err := healthpb.NewHealthClient(conn).Watch(t.Context(), &healthpb.HealthCheckRequest{})
		must(t, err)
		if _, err := watch.Recv(); err != nil {
			t.Fatal(err)
		}
		cancel()
		startTime := time.Now()
		stop(server)
		if elapsed := time.Since(startTime); elapsed != stopTimeout {
			t.Errorf("the stop took %v, want %v", elapsed, stopTimeout)
		}
	})
}
