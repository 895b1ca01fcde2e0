package pickfirst

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/balancer"
	grpcpickfirst "google.golang.org/grpc/balancer/pickfirst"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/understudy-lb/understudy/policy/pickfirst"
)

// built is the number of pick_first instances that were built.
var built atomic.Int64

type countingBuilder struct{ balancer.Builder }

func (c countingBuilder) Build(cc balancer.ClientConn, opts balancer.BuildOptions) balancer.Balancer {
	built.Add(1)
	return c.Builder.Build(cc, opts)
}

func (countingBuilder) Name() string { return grpcpickfirst.Name }

func init() { balancer.Register(countingBuilder{balancer.Get(pickfirst.Name)}) }

type backend struct {
	name   string
	lis    *bufconn.Listener
	health *health.Server
	broken atomic.Bool // calls fail with UNAVAILABLE
	dials  atomic.Int64
	stop   func()
}

func startBackends(t *testing.T, names ...string) map[string]*backend {
	backends := map[string]*backend{}
	for _, name := range names {
		b := &backend{name: name, lis: bufconn.Listen(1 << 16), health: health.NewServer()}
		s := grpc.NewServer(grpc.UnaryInterceptor(b.answer))
		healthpb.RegisterHealthServer(s, b.health)
		var served sync.WaitGroup
		served.Go(func() { s.Serve(b.lis) })
		b.stop = func() { s.Stop(); served.Wait() }
		t.Cleanup(b.stop)
		backends[name] = b
	}
	return backends
}

func (b *backend) answer(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	if b.broken.Load() {
		return nil, status.Error(codes.Unavailable, "broken")
	}
	grpc.SetHeader(ctx, metadata.Pairs("server", b.name))
	return handler(ctx, req)
}

func dial(t *testing.T, backends map[string]*backend, serviceConfig string) *grpc.ClientConn {
	t.Helper()
	r := manual.NewBuilderWithScheme("listed")
	var state resolver.State
	for name := range backends {
		state.Endpoints = append(state.Endpoints, resolver.Endpoint{Addresses: []resolver.Address{{Addr: name}}})
	}
	r.InitialState(state)
	cc, err := grpc.NewClient("listed:///backends",
		grpc.WithResolvers(r),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
			b := backends[address]
			b.dials.Add(1)
			return b.lis.DialContext(ctx)
		}),
		grpc.WithDefaultServiceConfig(serviceConfig))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cc.Close() })
	return cc
}

// callAll makes n calls and returns the number of successful calls of each backend. The key "" has
// the number of failed calls.
func callAll(cc *grpc.ClientConn, n int) map[string]int {
	answers := map[string]int{}
	for range n {
		var header metadata.MD
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		_, err := healthpb.NewHealthClient(cc).Check(ctx, &healthpb.HealthCheckRequest{}, grpc.Header(&header))
		cancel()
		if err != nil {
			answers[""]++
			continue
		}
		answers[strings.Join(header.Get("server"), "")]++
	}
	return answers
}

func wantAnswers(t *testing.T, cc *grpc.ClientConn, want string) {
	t.Helper()
	if got := fmt.Sprint(callAll(cc, 60)); got != want {
		t.Errorf("60 calls reached %s, want %s", got, want)
	}
}

func advance(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}
