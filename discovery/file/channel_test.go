package file

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/understudy-lb/understudy/internal/testing/given"
)

type backend struct {
	healthpb.UnimplementedHealthServer
	port      int
	calls     atomic.Int64
	authority atomic.Value
}

func (b *backend) Check(ctx context.Context, _ *healthpb.HealthCheckRequest) (*healthpb.HealthCheckResponse, error) {
	md, _ := metadata.FromIncomingContext(ctx)
	b.authority.Store(strings.Join(md[":authority"], ","))
	if len(md["grpc-previous-rpc-attempts"]) == 0 {
		return nil, status.Error(codes.Unavailable, "first attempt")
	}
	b.calls.Add(1)
	return &healthpb.HealthCheckResponse{Status: healthpb.HealthCheckResponse_SERVING}, nil
}

func startBackend(t *testing.T) *backend {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := &backend{port: listener.Addr().(*net.TCPAddr).Port}
	server := grpc.NewServer()
	healthpb.RegisterHealthServer(server, b)
	go server.Serve(listener)
	t.Cleanup(server.Stop)
	return b
}

const retryConfig = `{"methodConfig": [{"name": [{}], "retryPolicy": {"maxAttempts": 2, "initialBackoff": "0.001s",
	"maxBackoff": "0.001s", "backoffMultiplier": 1, "retryableStatusCodes": ["UNAVAILABLE"]}}]}`

// Until the file is created, calls must fail with an error that contains its path. After that,
// calls must go to the endpoints in the file, with the user's service config.
func TestChannel(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
	defer cancel()
	first, second := startBackend(t), startBackend(t)
	endpointsOf := func(b *backend) string {
		return strings.Replace(onePort(b.port), "192.0.2.1", "127.0.0.1", 1)
	}
	path := newPath(t)
	conn, err := grpc.NewClient(fmt.Sprintf("file://%s?authority=checkout.example.com", path),
		grpc.WithResolvers(given.Builder(Scheme, given.Set("ServiceConfig", retryConfig))),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	client := healthpb.NewHealthClient(conn)
	check := func(opts ...grpc.CallOption) error {
		_, err := client.Check(ctx, &healthpb.HealthCheckRequest{}, opts...)
		return err
	}

	err = check()
	if want := "file: " + path + ": no such file or directory"; status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), want) {
		t.Fatalf("without the file: %v, want UNAVAILABLE with %q", err, want)
	}
	write(t, path, endpointsOf(first))
	// This call may fail, because a call that is made before the service config arrives is not
	// retried.
	_ = check(grpc.WaitForReady(true))
	if err := check(); err != nil || first.calls.Load() == 0 {
		t.Fatalf("with the file: %v after %d calls", err, first.calls.Load())
	}
	if got := first.authority.Load(); got != "checkout.example.com" {
		t.Errorf("authority = %v, want that of the target", got)
	}
	replace(t, path, endpointsOf(second))
	for second.calls.Load() == 0 {
		if err := check(); err != nil {
			t.Fatalf("while the file was replaced: %v", err)
		}
	}
}
