package e2e

import (
	"testing"

	"google.golang.org/grpc"
	healthgrpc "google.golang.org/grpc/health/grpc_health_v1"
)

// A stream stays on its priority until it ends, even after calls have returned to a higher one.
func TestStreamStaysOnPriority(t *testing.T) {
	t.Parallel()
	first, second := startServer(t, "first", nil), startServer(t, "second", nil)
	cc := newClient(t, "file://"+endpointsFile(t, endpoints([]string{first.address}, []string{second.address})))
	ctx := timeoutContext(t, eventTimeout)
	awaitName(ctx, t, cc, "first")
	first.grpc.Stop()
	awaitName(ctx, t, cc, "second")
	stream, err := healthgrpc.NewHealthClient(cc).Watch(ctx, &healthgrpc.HealthCheckRequest{}, grpc.WaitForReady(true))
	if err != nil {
		t.Fatal(err)
	}
	expectStatus(t, stream, healthgrpc.HealthCheckResponse_SERVING)
	startServerOn(t, "first", first.address, nil)
	awaitName(ctx, t, cc, "first")
	second.health.SetServingStatus("", healthgrpc.HealthCheckResponse_NOT_SERVING)
	expectStatus(t, stream, healthgrpc.HealthCheckResponse_NOT_SERVING)
	awaitName(ctx, t, cc, "first")
}

func expectStatus(t *testing.T, stream healthgrpc.Health_WatchClient, want healthgrpc.HealthCheckResponse_ServingStatus) {
	t.Helper()
	if got, err := stream.Recv(); err != nil || got.GetStatus() != want {
		t.Fatalf("the stream received %v, %v, want %v from the second priority", got, err, want)
	}
}
