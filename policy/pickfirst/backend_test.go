package pickfirst

import (
	"context"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/resolver/manual"
)

func serve(lis net.Listener) (*grpc.Server, chan struct{}) {
	s := grpc.NewServer()
	healthpb.RegisterHealthServer(s, health.NewServer())
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.Serve(lis)
	}()
	return s, done
}

type spy struct {
	mu     sync.Mutex
	states []string
	closed int

	resolver *manual.Resolver
}

const spyName = "understudy_pick_first_spied_on"

var currentSpy = make(chan *spy, 1)

type spyBuilder struct{ balancer.Builder }

func init() { balancer.Register(&spyBuilder{newBuilder(spyName)}) }

func (b *spyBuilder) Build(cc balancer.ClientConn, opts balancer.BuildOptions) balancer.Balancer {
	s := <-currentSpy
	currentSpy <- s
	return &spyPolicy{b.Builder.Build(&spyClientConn{cc, s}, opts), s}
}

type spyClientConn struct {
	balancer.ClientConn
	spy *spy
}

func (c *spyClientConn) UpdateState(s balancer.State) {
	c.spy.mu.Lock()
	c.spy.states = append(c.spy.states, s.ConnectivityState.String())
	c.spy.mu.Unlock()
	c.ClientConn.UpdateState(s)
}

type spyPolicy struct {
	balancer.Balancer
	spy *spy
}

func (p *spyPolicy) Close() {
	p.Balancer.Close()
	p.spy.mu.Lock()
	defer p.spy.mu.Unlock()
	p.spy.closed++
}

func (s *spy) published() (string, int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.states, " "), s.closed
}

func dial(t *testing.T, addresses []string, opts ...grpc.DialOption) (*grpc.ClientConn, *spy) {
	t.Helper()
	r := manual.NewBuilderWithScheme("listed")
	s := &spy{resolver: r}
	currentSpy <- s
	t.Cleanup(func() { <-currentSpy })
	r.InitialState(endpoints(addresses...))
	cc, err := grpc.NewClient("listed:///backends", append([]grpc.DialOption{
		grpc.WithResolvers(r),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultServiceConfig(`{"loadBalancingConfig": [{"` + spyName + `": {}}]}`),
	}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cc.Close() })
	return cc, s
}

func call(cc grpc.ClientConnInterface, opts ...grpc.CallOption) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var p peer.Peer
	_, err := healthpb.NewHealthClient(cc).Check(ctx, &healthpb.HealthCheckRequest{}, append(opts, grpc.Peer(&p))...)
	if err != nil {
		return "", err
	}
	return p.Addr.String(), nil
}

func wantCall(t *testing.T, cc grpc.ClientConnInterface, address string, opts ...grpc.CallOption) {
	t.Helper()
	got, err := call(cc, opts...)
	if err != nil || got != address {
		t.Fatalf("the call reached %q with error %v, want %s", got, err, address)
	}
}
