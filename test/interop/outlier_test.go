package interop

import (
	"context"
	"net"
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
)

func failingBackend(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(grpc.UnaryInterceptor(func(context.Context, any, *grpc.UnaryServerInfo, grpc.UnaryHandler) (any, error) {
		return nil, status.Error(codes.Internal, "broken")
	}))
	healthpb.RegisterHealthServer(server, healthpb.UnimplementedHealthServer{})
	go server.Serve(listener)
	t.Cleanup(server.Stop)
	return listener.Addr().String()
}

// understudy serve sends a cluster with outlier_detection. gRPC's own xDS client and ours must
// eject a failing endpoint.
func TestOutlierDetectionAgainstServe(t *testing.T) {
	t.Parallel()
	withBoth(t, "?cds=true", func(t *testing.T, open func(address string) *grpc.ClientConn) {
		path := filepath.Join(t.TempDir(), "shop.yaml")
		cluster := "- name: shop\n" +
			"  outlier_detection: {interval: 1s, max_ejection_percent: 40, enforcing_success_rate: 0, enforcing_failure_percentage: 100, failure_percentage_minimum_hosts: 3, failure_percentage_request_volume: 5}\n" +
			"  load_assignment: {endpoints: [{lb_endpoints: ["
		for _, address := range []string{backend(t), backend(t), failingBackend(t)} {
			cluster += "{" + endpointAt(address) + "}, "
		}
		writeClusters(t, path, cluster+"]}]}\n")
		conn := open(serve(t, "127.0.0.1:0", path).address)
		failed, succeeded := 0, 0
		begin := time.Now()
		for succeeded < 300 {
			_, err := call(conn)
			if succeeded++; err != nil {
				failed, succeeded = failed+1, 0
			}
			if err != nil && status.Code(err) != codes.Internal {
				t.Fatal(err)
			}
			if time.Since(begin) > timeout {
				t.Fatalf("%d calls failed within %v, and no 300 in a row succeeded", failed, timeout)
			}
		}
		if failed == 0 {
			t.Error("no call failed, want the failing endpoint to be used at first")
		}
	})
}
