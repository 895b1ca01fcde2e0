package pickfirst

import (
	"testing"
	"testing/synctest"

	healthpb "google.golang.org/grpc/health/grpc_health_v1"
)

// With gRPC-Go's round_robin and client-side health checks, a NOT_SERVING server must get no calls,
// and its connection must stay open.
func TestRoundRobinWithHealthCheck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		backends := startBackends(t, "a", "b", "c")
		for _, b := range backends {
			b.health.SetServingStatus("shop", healthpb.HealthCheckResponse_SERVING)
		}
		before := built.Load()
		cc := dial(t, backends, `{"loadBalancingConfig": [{"round_robin": {}}], "healthCheckConfig": {"serviceName": "shop"}}`)
		callAll(cc, 1)
		synctest.Wait()
		wantAnswers(t, cc, "map[a:20 b:20 c:20]")

		backends["b"].health.SetServingStatus("shop", healthpb.HealthCheckResponse_NOT_SERVING)
		synctest.Wait()
		wantAnswers(t, cc, "map[a:30 c:30]")

		backends["b"].health.SetServingStatus("shop", healthpb.HealthCheckResponse_SERVING)
		synctest.Wait()
		wantAnswers(t, cc, "map[a:20 b:20 c:20]")

		if n := built.Load() - before; n != 3 {
			t.Errorf("%d of our policies were built, want 3", n)
		}
		if n := backends["b"].dials.Load(); n != 1 {
			t.Errorf("%d connections to b, want 1", n)
		}
	})
}
