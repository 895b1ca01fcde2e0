package eds

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	estats "google.golang.org/grpc/experimental/stats"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/stats"

	"github.com/understudy-lb/understudy/internal/testing/given"
	"github.com/understudy-lb/understudy/internal/testing/testlog"
)

func backend(t *testing.T) string {
	t.Helper()
	l := listen(t)
	address := l.Addr().String()
	server := grpc.NewServer(grpc.UnaryInterceptor(func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
		if err := grpc.SetHeader(ctx, metadata.Pairs("backend", address)); err != nil {
			return nil, err
		}
		return handle(ctx, req)
	}))
	healthpb.RegisterHealthServer(server, health.NewServer())
	go server.Serve(l)
	t.Cleanup(server.Stop)
	return address
}

type traffic struct {
	t       *testing.T
	conn    *grpc.ClientConn
	metrics *metrics
}

func newTraffic(t *testing.T, target string, opts ...grpc.DialOption) *traffic {
	t.Helper()
	m := &metrics{counts: make(map[string]int64), changed: make(chan struct{}, 1)}
	opts = append(opts, grpc.WithResolvers(given.Builder(Scheme)), grpc.WithStatsHandler(m), grpc.WithTransportCredentials(insecure.NewCredentials()))
	conn, err := grpc.NewClient(target, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return &traffic{t, conn, m}
}

func (c *traffic) call() string {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
	defer cancel()
	var header metadata.MD
	if _, err := healthpb.NewHealthClient(c.conn).Check(ctx, &healthpb.HealthCheckRequest{}, grpc.Header(&header)); err != nil {
		c.t.Fatalf("a call failed: %v", err)
	}
	return strings.Join(header.Get("backend"), ",")
}

func (c *traffic) wantAllCallsTo(want string, n int) {
	c.t.Helper()
	for range n {
		if got := c.call(); got != want {
			c.t.Fatalf("a call reached %s, want %s", got, want)
		}
	}
}

func (c *traffic) awaitCallTo(want string) {
	c.t.Helper()
	tick := time.Tick(time.Millisecond) // the tests run beside each other on two cores
	for end := time.Now().Add(testTimeout); c.call() != want; <-tick {
		if time.Now().After(end) {
			c.t.Fatalf("no call reached %s within %v", want, testTimeout)
		}
	}
}

type metrics struct {
	estats.UnimplementedMetricsRecorder
	changed chan struct{}

	mu     sync.Mutex
	counts map[string]int64
}

func (m *metrics) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context   { return ctx }
func (m *metrics) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }
func (m *metrics) HandleRPC(context.Context, stats.RPCStats)                         {}
func (m *metrics) HandleConn(context.Context, stats.ConnStats)                       {}

func (m *metrics) RecordInt64Count(h *estats.Int64CountHandle, n int64, _ ...string) {
	m.add(h.Descriptor().Name, n)
}

func (m *metrics) RecordInt64UpDownCount(h *estats.Int64UpDownCountHandle, n int64, _ ...string) {
	m.add(h.Descriptor().Name, n)
}

func (m *metrics) add(name string, n int64) {
	m.mu.Lock()
	m.counts[name] += n
	m.mu.Unlock()
	select {
	case m.changed <- struct{}{}:
	default:
	}
}

func (m *metrics) get(name string) int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.counts[name]
}

func (m *metrics) wait(t *testing.T, name string, n int64) {
	t.Helper()
	m.waitFor(t, name, func(got int64) bool { return got >= n })
}

func (m *metrics) waitFor(t *testing.T, name string, isReached func(int64) bool) {
	t.Helper()
	deadline := time.After(testTimeout)
	for !isReached(m.get(name)) {
		select {
		case <-m.changed:
		case <-deadline:
			t.Fatalf("%s is %d after %v", name, m.get(name), testTimeout)
		}
	}
}

var logged = testlog.Capture()
