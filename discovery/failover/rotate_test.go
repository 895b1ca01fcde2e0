package failover_test

import (
	"context"
	"fmt"
	"net"
	"strings"
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

	"github.com/understudy-lb/understudy/discovery/failover"
	"github.com/understudy-lb/understudy/internal/testing/given"
)

type fakeDNSBuilder struct {
	mu      sync.Mutex
	answers []string
	lookups int
}

func (*fakeDNSBuilder) Scheme() string { return "dns" }

func (d *fakeDNSBuilder) Build(_ resolver.Target, cc resolver.ClientConn, _ resolver.BuildOptions) (resolver.Resolver, error) {
	w := &fakeDNSWatch{d, cc}
	w.ResolveNow(resolver.ResolveNowOptions{})
	return w, nil
}

func (d *fakeDNSBuilder) set(answers ...string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.answers, d.lookups = answers, 0
}

func (d *fakeDNSBuilder) count() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.lookups
}

type fakeDNSWatch struct {
	*fakeDNSBuilder
	cc resolver.ClientConn
}

func (w *fakeDNSWatch) ResolveNow(resolver.ResolveNowOptions) {
	w.mu.Lock()
	answer := w.answers[w.lookups%len(w.answers)]
	w.lookups++
	w.mu.Unlock()
	var state resolver.State
	for a := range strings.FieldsSeq(answer) {
		state.Endpoints = append(state.Endpoints, resolver.Endpoint{Addresses: []resolver.Address{{Addr: a}}})
	}
	_ = w.cc.UpdateState(state)
}

func (*fakeDNSWatch) Close() {}

// memoryNetwork is a network in memory with a server at each address. It counts the connections
// that the client opens and closes.
type memoryNetwork struct {
	mu            sync.Mutex
	listeners     map[string]*bufconn.Listener
	servers       []*grpc.Server
	dials, closes map[string]int
}

func newMemoryNetwork() *memoryNetwork {
	return &memoryNetwork{listeners: make(map[string]*bufconn.Listener), dials: make(map[string]int), closes: make(map[string]int)}
}

func (m *memoryNetwork) dial(ctx context.Context, address string) (net.Conn, error) {
	m.mu.Lock()
	m.dials[address]++
	listener := m.listeners[address]
	if listener == nil {
		listener = bufconn.Listen(1 << 16)
		m.listeners[address] = listener
		server := grpc.NewServer()
		healthpb.RegisterHealthServer(server, health.NewServer())
		m.servers = append(m.servers, server)
		go server.Serve(listener)
	}
	m.mu.Unlock()
	conn, err := listener.DialContext(ctx)
	return &countedConn{Conn: conn, memoryNetwork: m, address: address}, err
}

func (m *memoryNetwork) stop() {
	for _, s := range m.servers {
		s.Stop()
	}
}

func (m *memoryNetwork) summary() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return fmt.Sprint("dialled ", m.dials, ", closed ", m.closes)
}

type countedConn struct {
	net.Conn
	memoryNetwork *memoryNetwork
	address       string
	once          sync.Once
}

func (c *countedConn) RemoteAddr() net.Addr { return memoryAddr(c.address) }

func (c *countedConn) Close() error {
	c.once.Do(func() {
		c.memoryNetwork.mu.Lock()
		c.memoryNetwork.closes[c.address]++
		c.memoryNetwork.mu.Unlock()
	})
	return c.Conn.Close()
}

type memoryAddr string

func (memoryAddr) Network() string  { return "memory" }
func (n memoryAddr) String() string { return string(n) }

func runInMemory(t *testing.T, d *fakeDNSBuilder, f func(*memoryNetwork, *grpc.ClientConn), opts ...given.Option) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		network := newMemoryNetwork()
		conn, err := grpc.NewClient("failover:///name.test:1", grpc.WithContextDialer(network.dial),
			grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithIdleTimeout(0),
			grpc.WithResolvers(given.Builder(failover.Scheme, append(opts, given.Sources(failover.WithResolvers(d)))...)))
		if err != nil {
			t.Fatal(err)
		}
		conn.Connect()
		synctest.Wait()
		f(network, conn)
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
		network.stop()
	})
}

func countCalls(t *testing.T, conn *grpc.ClientConn, n int) string {
	t.Helper()
	counts := make(map[string]int)
	for range n {
		var from peer.Peer
		if _, err := healthpb.NewHealthClient(conn).Check(context.Background(), &healthpb.HealthCheckRequest{}, grpc.Peer(&from)); err != nil {
			t.Fatal(err)
		}
		counts[from.Addr.String()]++
	}
	return fmt.Sprint(counts)
}

// Each DNS answer contains another subset of the addresses. If removeAfter equals the number of
// subsets, no connection may be closed within an hour.
func TestRotatingSubsetsKeepConnections(t *testing.T) {
	for _, subsets := range [][]string{{"a:1"}, {"a:1 b:1", "c:1 d:1"}, {"a:1 b:1", "b:1 c:1", "d:1"}, {"a:1", "b:1", "c:1", "d:1", "e:1"}} {
		d := &fakeDNSBuilder{answers: subsets}
		runInMemory(t, d, func(network *memoryNetwork, conn *grpc.ClientConn) {
			time.Sleep(time.Duration(len(subsets)) * 34 * time.Second)
			before := network.summary()
			time.Sleep(time.Hour)
			if after := network.summary(); after != before || !strings.Contains(after, "closed map[]") {
				t.Errorf("%q: %s after an hour, want %s, none closed", subsets, after, before)
			}
			if n := d.count(); n < 100 {
				t.Errorf("%q: %d lookups in an hour", subsets, n)
			}
		}, given.Set("Refresh", 30*time.Second), given.Set("RemoveAfter", max(len(subsets), 1)))
	}
}

// If removeAfter is smaller than the number of subsets, connections are closed. This proves that
// TestRotatingSubsetsKeepConnections can fail.
func TestRotatingSubsetsWithLowRemoveAfter(t *testing.T) {
	runInMemory(t, &fakeDNSBuilder{answers: []string{"a:1", "b:1", "c:1"}}, func(network *memoryNetwork, _ *grpc.ClientConn) {
		time.Sleep(10 * time.Minute)
		if summary := network.summary(); strings.Contains(summary, "closed map[]") {
			t.Errorf("%s, want some closed", summary)
		}
	}, given.Set("Refresh", 30*time.Second), given.Set("RemoveAfter", 2))
}

// A new backend must get its share of the calls after one refresh interval and one lookup. A
// removed backend must get calls until two consecutive answers do not contain it. No other
// connection may be closed.
func TestBackendIsAddedAndRemoved(t *testing.T) {
	const refresh, jitter = 30 * time.Second, 3 * time.Second
	d := &fakeDNSBuilder{answers: []string{"a:1 b:1"}}
	runInMemory(t, d, func(network *memoryNetwork, conn *grpc.ClientConn) {
		if got := countCalls(t, conn, 100); got != "map[a:1:50 b:1:50]" {
			t.Errorf("at first: %s", got)
		}
		d.set("b:1 a:1 c:1 d:1")
		time.Sleep(refresh + jitter)
		countCalls(t, conn, 4)
		synctest.Wait()
		if got := countCalls(t, conn, 100); got != "map[a:1:25 b:1:25 c:1:25 d:1:25]" {
			t.Errorf("after two were added: %s", got)
		}
		d.set("c:1 b:1")
		for answers := range 3 {
			for d.count() < answers {
				time.Sleep(time.Second)
			}
			want := "map[a:1:25 b:1:25 c:1:25 d:1:25]"
			if answers == 2 {
				want = "map[b:1:50 c:1:50]"
			}
			if got := countCalls(t, conn, 100); got != want {
				t.Errorf("after %d answers without two: %s, want %s", answers, got, want)
			}
		}
		if summary := network.summary(); summary != "dialled map[a:1:1 b:1:1 c:1:1 d:1:1], closed map[a:1:1 d:1:1]" {
			t.Errorf("%s", summary)
		}
	}, given.Set("Refresh", refresh))
}
