package priority

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	_ "google.golang.org/grpc/balancer/roundrobin" // registers round_robin
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"
	"google.golang.org/grpc/test/bufconn"

	"github.com/understudy-lb/understudy/internal/lb/hierarchy"
)

type network struct {
	t        *testing.T
	mu       sync.Mutex
	backends map[string]*backend // backends by address; a connection to any other address hangs
}

type backend struct {
	listener *bufconn.Listener
	down     bool
	open     []net.Conn
}

func newNetwork(t *testing.T, addresses ...string) *network {
	n := &network{t: t, backends: map[string]*backend{}}
	for _, address := range addresses {
		b := &backend{listener: bufconn.Listen(1 << 16)}
		n.backends[address] = b
		server := grpc.NewServer()
		healthpb.RegisterHealthServer(server, health.NewServer())
		go func() { _ = server.Serve(b.listener) }()
		t.Cleanup(server.Stop)
	}
	return n
}

func (n *network) dial(ctx context.Context, address string) (net.Conn, error) {
	n.mu.Lock()
	b := n.backends[address]
	refused := b != nil && b.down
	n.mu.Unlock()
	switch {
	case b == nil:
		<-ctx.Done()
		return nil, ctx.Err()
	case refused:
		return nil, errors.New("refused")
	}
	conn, err := b.listener.DialContext(ctx)
	if err == nil {
		n.mu.Lock()
		defer n.mu.Unlock()
		b.open = append(b.open, conn)
	}
	return conn, err
}

func (n *network) closeConnections(address string) {
	n.mu.Lock()
	conns := n.backends[address].open
	n.backends[address].open = nil
	n.mu.Unlock()
	for _, conn := range conns {
		_ = conn.Close()
	}
}

func (n *network) setDown(address string, down bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.backends[address].down = down
}

type channel struct {
	t        *testing.T
	conn     *grpc.ClientConn
	resolver *manual.Resolver
}

func (n *network) newChannel() *channel {
	c := &channel{t: n.t, resolver: manual.NewBuilderWithScheme("test")}
	conn, err := grpc.NewClient("test:///", grpc.WithResolvers(c.resolver), grpc.WithContextDialer(n.dial),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		n.t.Fatal(err)
	}
	c.conn = conn
	conn.Connect()
	synctest.Wait()
	n.t.Cleanup(func() {
		_ = conn.Close()
		synctest.Wait()
	})
	return c
}

// update sends a configuration and endpoints to the channel. "p0/10.0.0.1:80" is an endpoint of
// child p0.
func (c *channel) update(config string, endpoints ...string) {
	var state resolver.State
	for _, text := range endpoints {
		path, address, _ := strings.Cut(text, "/")
		e := resolver.Endpoint{Addresses: []resolver.Address{{Addr: address}}}
		state.Endpoints = append(state.Endpoints, hierarchy.Set(e, path))
	}
	state.ServiceConfig = c.resolver.CC().ParseServiceConfig(fmt.Sprintf(`{"loadBalancingConfig": [{%q: %s}]}`, Name, config))
	if state.ServiceConfig.Err != nil {
		c.t.Fatal(state.ServiceConfig.Err)
	}
	c.resolver.UpdateState(state)
	synctest.Wait()
}

func (c *channel) call(opts ...grpc.CallOption) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	_, err := healthpb.NewHealthClient(c.conn).Check(ctx, &healthpb.HealthCheckRequest{}, opts...)
	return err
}

// The policies of grpc-go hold locks while they report. Concurrent updates, failures, failover
// timers and calls must not cause a deadlock.
func TestGRPCGoChildren(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t, "a", "b", "c", "d")
		c := n.newChannel()
		config := `{"children": {"p0": {"config": [{"round_robin": {}}]}, "p1": {"config": [{"pick_first": {}}]}}, "priorities": %s, "childRetention": "%ds"}`
		var workers sync.WaitGroup
		repeat := func(every time.Duration, f func(i int)) {
			workers.Go(func() {
				for i := range 200 {
					<-time.After(every)
					f(i)
				}
			})
		}
		repeat(700*time.Millisecond, func(i int) { n.setDown([]string{"a", "b", "c", "d"}[i%4], i%3 > 0) })
		repeat(900*time.Millisecond, func(i int) { n.closeConnections([]string{"a", "b", "c", "d"}[i%4]) })
		repeat(500*time.Millisecond, func(i int) {
			endpoints := []string{"p0/a", "p0/never", "p1/c", "p1/d"}
			if i%2 > 0 {
				endpoints = []string{"p0/b", "p0/a", "p1/d"}
			}
			c.update(fmt.Sprintf(config, []string{`["p0", "p1"]`, `["p0", "p1"]`, `["p1", "p0"]`}[i/10%3], i/50), endpoints...)
		})
		repeat(100*time.Millisecond, func(int) { _ = c.call() })
		workers.Wait()
		for _, address := range []string{"a", "b", "c", "d"} {
			n.setDown(address, false)
		}
		c.update(fmt.Sprintf(config, `["p0", "p1"]`, 0), "p0/a", "p1/c")
		if err := c.call(grpc.WaitForReady(true)); err != nil {
			t.Error(err)
		}
	})
}
