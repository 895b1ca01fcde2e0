package channel_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/test/bufconn"

	"github.com/understudy-lb/understudy"
	"github.com/understudy-lb/understudy/discovery/failover"
)

type memoryNetwork struct {
	t       *testing.T
	options []grpc.ServerOption
	// handle runs before each call is answered. A server answers with its error, or else with OK.
	handle func(ctx context.Context, address string) error

	mu      sync.Mutex
	servers map[string]*memoryServer

	// dialing is held while a pipe is created, which starts timers that fire at once. If two of
	// them fire in a bubble at the same time, Go 1.26.8 crashes under the race detector.
	dialing sync.Mutex
}

type memoryServer struct {
	listener *bufconn.Listener
	server   *grpc.Server
	down     bool // refuses connections
	hangs    bool // does not answer when a connection is made
	attempts int
	open     map[*memoryConn]bool
}

type memoryConn struct {
	net.Conn
	address string
	closed  func()
}

func (c *memoryConn) RemoteAddr() net.Addr { return c }
func (c *memoryConn) Network() string      { return "memory" }
func (c *memoryConn) String() string       { return c.address }

func (c *memoryConn) Close() error {
	c.closed()
	return c.Conn.Close()
}

func newMemory(t *testing.T, options ...grpc.ServerOption) *memoryNetwork {
	m := &memoryNetwork{t: t, options: options, servers: map[string]*memoryServer{}}
	t.Cleanup(func() {
		for _, s := range m.servers {
			s.server.Stop()
		}
		synctest.Wait()
	})
	return m
}

func (m *memoryNetwork) server(address string) *memoryServer {
	s := m.servers[address]
	if s == nil {
		s = &memoryServer{listener: bufconn.Listen(1 << 16), server: grpc.NewServer(append(m.options, grpc.ChainUnaryInterceptor(m.interceptor(address)))...), open: map[*memoryConn]bool{}}
		healthpb.RegisterHealthServer(s.server, health.NewServer())
		go func() { _ = s.server.Serve(s.listener) }()
		m.servers[address] = s
	}
	return s
}

func (m *memoryNetwork) interceptor(address string) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, request any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		if m.handle != nil {
			if err := m.handle(ctx, address); err != nil {
				return nil, err
			}
		}
		return handler(ctx, request)
	}
}

func (m *memoryNetwork) dial(ctx context.Context, address string) (net.Conn, error) {
	m.mu.Lock()
	s := m.server(address)
	s.attempts++
	down := s.down
	m.mu.Unlock()
	if down && !m.isHanging(s) {
		return nil, errors.New("connection refused")
	}
	for m.isHanging(s) && ctx.Err() == nil {
		time.Sleep(10 * time.Millisecond)
	}
	m.dialing.Lock()
	conn, err := s.listener.DialContext(ctx)
	m.dialing.Unlock()
	if err != nil {
		return nil, err
	}
	c := &memoryConn{Conn: conn, address: address}
	c.closed = func() {
		m.mu.Lock()
		delete(s.open, c)
		m.mu.Unlock()
	}
	m.mu.Lock()
	s.open[c] = true
	m.mu.Unlock()
	return c, nil
}

func (m *memoryNetwork) isHanging(s *memoryServer) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return s.hangs
}

// setHanging closes the connections of a server, and lets attempts to make new ones hang.
func (m *memoryNetwork) setHanging(hangs bool, address string) {
	m.mu.Lock()
	m.server(address).hangs = hangs
	m.mu.Unlock()
	if hangs {
		m.setDown(true, address)
		m.setDown(false, address)
	}
}

func (m *memoryNetwork) setDown(down bool, addresses ...string) {
	var closing []net.Conn
	m.mu.Lock()
	for _, address := range addresses {
		s := m.server(address)
		s.down = down
		for c := range s.open {
			if down {
				closing = append(closing, c.Conn)
			}
		}
	}
	m.mu.Unlock()
	for _, c := range closing {
		_ = c.Close()
	}
	synctest.Wait()
}

func (m *memoryNetwork) connected(addresses ...string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := 0
	for _, address := range addresses {
		n += min(1, len(m.server(address).open))
	}
	return n
}

func (m *memoryNetwork) await(addresses ...string) {
	for m.connected(addresses...) == 0 {
		time.Sleep(10 * time.Millisecond)
		synctest.Wait()
	}
}

func (m *memoryNetwork) attempts(address string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.server(address).attempts
}

// tierResolver resolves tier:///a4 to the addresses a0, a1, a2 and a3.
type tierResolver struct{}

func (tierResolver) Scheme() string { return "tier" }

func (tierResolver) Build(target resolver.Target, cc resolver.ClientConn, _ resolver.BuildOptions) (resolver.Resolver, error) {
	name := target.Endpoint()
	n, err := strconv.Atoi(name[1:])
	if err != nil {
		return nil, err
	}
	var endpoints []resolver.Endpoint
	for _, address := range addressNames(name[:1], n) {
		endpoints = append(endpoints, resolver.Endpoint{Addresses: []resolver.Address{{Addr: address}}})
	}
	if n == 0 {
		cc.ReportError(errors.New("no such host"))
		return tierResolver{}, nil
	}
	return tierResolver{}, cc.UpdateState(resolver.State{Endpoints: endpoints})
}

func (tierResolver) ResolveNow(resolver.ResolveNowOptions) {}
func (tierResolver) Close()                                {}

func addressNames(name string, n int) (list []string) {
	for i := range n {
		list = append(list, fmt.Sprint(name, i))
	}
	return list
}

func (m *memoryNetwork) newChannel(target string, o understudy.Options, dialOptions ...grpc.DialOption) *grpc.ClientConn {
	m.t.Helper()
	o.Sources = append(o.Sources, failover.WithResolvers(tierResolver{}))
	return m.connect(understudy.NewClient(target, o, append(m.dialOptions(), dialOptions...)...))
}

func (m *memoryNetwork) dialOptions() []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithContextDialer(m.dial), grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithIdleTimeout(0),
	}
}

func (m *memoryNetwork) connect(cc *grpc.ClientConn, err error) *grpc.ClientConn {
	m.t.Helper()
	if err != nil {
		m.t.Fatal(err)
	}
	cc.Connect()
	m.t.Cleanup(func() { _ = cc.Close() })
	synctest.Wait()
	return cc
}

func (m *memoryNetwork) call(cc *grpc.ClientConn) (string, error) {
	return m.callWith(context.Background(), cc)
}

func (m *memoryNetwork) callWith(ctx context.Context, cc *grpc.ClientConn) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	var p peer.Peer
	_, err := healthpb.NewHealthClient(cc).Check(ctx, &healthpb.HealthCheckRequest{}, grpc.Peer(&p))
	if err != nil {
		return "", err
	}
	return p.Addr.String(), nil
}
