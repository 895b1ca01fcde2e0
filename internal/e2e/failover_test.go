package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/understudy-lb/understudy/internal/testing/given"
)

func writeEndpoints(t *testing.T, path string, addresses ...string) {
	t.Helper()
	var b strings.Builder
	b.WriteString("cluster_name: e2e\nendpoints:\n")
	for priority, address := range addresses {
		host, port, _ := strings.Cut(address, ":")
		fmt.Fprintf(&b, "- {priority: %d, locality: {region: r%d}, load_balancing_weight: 1, lb_endpoints: [{endpoint: {address: {socket_address: {address: %s, port_value: %s}}}}]}\n",
			priority, priority, host, port)
	}
	if err := os.WriteFile(path+".new", []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

func newClient(t *testing.T, target string, opts ...grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	cc, err := grpc.NewClient(target, append([]grpc.DialOption{grpc.WithTransportCredentials(insecure.NewCredentials())}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cc.Close() })
	return cc
}

func timeoutContext(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

func TestRetryPolicySurvivesUpdate(t *testing.T) {
	t.Parallel()
	first, second := startServer(t, "first", nil), startServer(t, "second", nil)
	refuse := status.Error(codes.Unavailable, "try again")
	first.err, second.err = refuse, refuse
	path := filepath.Join(t.TempDir(), "endpoints.yaml")
	writeEndpoints(t, path, first.address)
	cc := newClient(t, "file://"+path, given.Dial(given.Set("ServiceConfig", `{"methodConfig":[{"name":[{}],"retryPolicy":{
		"maxAttempts":4,"initialBackoff":"0.01s","maxBackoff":"0.1s","backoffMultiplier":2,"retryableStatusCodes":["UNAVAILABLE"]}}]}`)))
	ctx := timeoutContext(t, eventTimeout)
	first.failures.Store(2)
	if _, err := who(ctx, cc, grpc.WaitForReady(true)); err != nil {
		t.Fatalf("before the update: %v", err)
	}
	writeEndpoints(t, path, second.address)
	awaitName(ctx, t, cc, "second")
	second.failures.Store(2)
	if _, err := who(ctx, cc); err != nil {
		t.Errorf("after the update: %v", err)
	}
}
