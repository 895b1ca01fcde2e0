package weightedroundrobin

import (
	"context"
	"errors"
	"fmt"
	"net"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/experimental/balancer/weight"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"
	"google.golang.org/grpc/status"
)

type backend struct {
	address string
	health  *health.Server
	server  *grpc.Server
}

func newBackend(t *testing.T) *backend {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := &backend{address: listener.Addr().String(), health: health.NewServer(), server: grpc.NewServer()}
	healthpb.RegisterHealthServer(b.server, b.health)
	served := make(chan error, 1)
	go func() { served <- b.server.Serve(listener) }()
	t.Cleanup(func() {
		b.server.Stop()
		if err := <-served; err != nil && !errors.Is(err, grpc.ErrServerStopped) {
			t.Errorf("serve: %v", err)
		}
	})
	return b
}

type client struct {
	t        *testing.T
	resolver *manual.Resolver
	conn     *grpc.ClientConn
}

func newClient(t *testing.T, extra string) *client {
	t.Helper()
	c := &client{t: t, resolver: manual.NewBuilderWithScheme("test")}
	conn, err := grpc.NewClient("test:///", grpc.WithResolvers(c.resolver),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultServiceConfig(fmt.Sprintf(`{"loadBalancingConfig": [{%q: {}}]%s}`, Name, extra)))
	if err != nil {
		t.Fatal(err)
	}
	c.conn = conn
	t.Cleanup(func() {
		if err := conn.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return c
}

func stateOf(backends ...*backend) resolver.State {
	var state resolver.State
	for i, b := range backends {
		e := resolver.Endpoint{Addresses: []resolver.Address{{Addr: b.address}}}
		state.Endpoints = append(state.Endpoints, weight.Set(e, weight.EndpointInfo{Weight: uint32(i + 1)}))
	}
	return state
}

func (c *client) call(opts ...grpc.CallOption) (string, error) {
	ctx, cancel := context.WithTimeout(c.t.Context(), time.Minute)
	defer cancel()
	var p peer.Peer
	_, err := healthpb.NewHealthClient(c.conn).Check(ctx, &healthpb.HealthCheckRequest{}, append(opts, grpc.Peer(&p))...)
	if err != nil {
		return "", err
	}
	return p.Addr.String(), nil
}

func (c *client) until(want map[string]int) {
	c.t.Helper()
	n := 0
	for _, calls := range want {
		n += calls
	}
	deadline := time.Now().Add(time.Minute)
	var got map[string]int
	for time.Now().Before(deadline) {
		got = map[string]int{}
		for range n {
			address, err := c.call(grpc.WaitForReady(true))
			if err != nil {
				c.t.Fatal(err)
			}
			got[address]++
		}
		if fmt.Sprint(got) == fmt.Sprint(want) {
			return
		}
	}
	c.t.Fatalf("calls went to %v, want %v", got, want)
}

func TestCallsFollowWeights(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	t.Run("channel", func(t *testing.T) {
		a, b, c := newBackend(t), newBackend(t), newBackend(t)
		cl := newClient(t, "")
		cl.resolver.InitialState(stateOf(a, b, c))
		cl.until(map[string]int{a.address: 10, b.address: 20, c.address: 30})
		b.server.GracefulStop()
		cl.until(map[string]int{a.address: 10, c.address: 30})
	})
}

func TestHealthChecking(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	t.Run("channel", func(t *testing.T) {
		a, b := newBackend(t), newBackend(t)
		a.health.SetServingStatus("s", healthpb.HealthCheckResponse_NOT_SERVING)
		b.health.SetServingStatus("s", healthpb.HealthCheckResponse_NOT_SERVING)
		cl := newClient(t, `, "healthCheckConfig": {"serviceName": "s"}`)
		cl.resolver.InitialState(stateOf(a, b))
		if _, err := cl.call(); status.Code(err) != codes.Unavailable {
			t.Errorf("a call without a serving backend: error %v, want UNAVAILABLE", err)
		}
		a.health.SetServingStatus("s", healthpb.HealthCheckResponse_SERVING)
		cl.until(map[string]int{a.address: 30})
		b.health.SetServingStatus("s", healthpb.HealthCheckResponse_SERVING)
		cl.until(map[string]int{a.address: 10, b.address: 20})
		a.health.SetServingStatus("s", healthpb.HealthCheckResponse_NOT_SERVING)
		cl.until(map[string]int{b.address: 30})
	})
}
