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

type dnsFake struct {
	mu      sync.Mutex
	answers []string
	lookups int
}

func (*dnsFake) Scheme() string { return "dns" }

func (d *dnsFake) Build(_ resolver.Target, cc resolver.ClientConn, _ resolver.BuildOptions) (resolver.Resolver, error) {
	w := &dnsWatch{d, cc}
	w.ResolveNow(resolver.ResolveNowOptions{})
	return w, nil
}

func (d *dnsFake) set(answers ...string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.answers, d.lookups = answers, 0
}

func (d *dnsFake) count() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.lookups
}

type dnsWatch struct {
	*dnsFake
	cc resolver.ClientConn
}

func (w *dnsWatch) ResolveNow(resolver.ResolveNowOptions) {
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

func (*dnsWatch) Close() {}

// memory is a network in memory with a server at each address. It counts the connections that the
// client dials and closes.
type memory struct {
	mu            sync.Mutex
	listeners     map[string]*bufconn.Listener
	servers       []*grpc.Server
	dials, closes map[string]int
}

func newMemory() *memory {
	return &memory{listeners: make(map[string]*bufconn.Listener), dials: make(map[string]int), closes: make(map[string]int)}
}

func (m *memory) dial(ctx context.Context, address string) (net.Conn, error) {
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
	return &counted{Conn: conn, memory: m, address: address}, err
}

func (m *memory) stop() {
	for _, s := range m.servers {
		s.Stop()
	}
}

func (m *memory) seen() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return fmt.Sprint("dialled ", m.dials, ", closed ", m.closes)
}

type counted struct {
	net.Conn
	memory  *memory
	address string
	once    sync.Once
}

func (c *counted) RemoteAddr() net.Addr { return named(c.address) }

func (c *counted) Close() error {
	c.once.Do(func() {
		c.memory.mu.Lock()
		c.memory.closes[c.address]++
		c.memory.mu.Unlock()
	})
	return c.Conn.Close()
}

type named string

func (named) Network() string  { return "memory" }
func (n named) String() string { return string(n) }

func inMemory(t *testing.T, d *dnsFake, f func(*memory, *grpc.ClientConn), opts ...given.Option) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		network := newMemory()
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

func shares(t *testing.T, conn *grpc.ClientConn, n int) string {
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

// Each answer for a name has another subset of its addresses. If removeAfter equals the number of
// subsets, no connection may be closed within an hour.
func TestRotatingSubsetsDropNoConnection(t *testing.T) {
	for _, subsets := range [][]string{{"a:1"}, {"a:1 b:1", "c:1 d:1"}, {"a:1 b:1", "b:1 c:1", "d:1"}, {"a:1", "b:1", "c:1", "d:1", "e:1"}} {
		d := &dnsFake{answers: subsets}
		inMemory(t, d, func(network *memory, conn *grpc.ClientConn) {
			time.Sleep(time.Duration(len(subsets)) * 34 * time.Second)
			before := network.seen()
			time.Sleep(time.Hour)
			if after := network.seen(); after != before || !strings.Contains(after, "closed map[]") {
				t.Errorf("%q: %s after an hour, want %s, none closed", subsets, after, before)
			}
			if n := d.count(); n < 100 {
				t.Errorf("%q: %d lookups in an hour", subsets, n)
			}
		}, given.Set("Refresh", 30*time.Second), given.Set("RemoveAfter", max(len(subsets), 1)))
	}
}

// If removeAfter is smaller than the number of subsets, connections are closed. This shows that
// TestRotatingSubsetsDropNoConnection can fail.
func TestRotatingSubsetsDropConnectionsBelow(t *testing.T) {
	inMemory(t, &dnsFake{answers: []string{"a:1", "b:1", "c:1"}}, func(network *memory, _ *grpc.ClientConn) {
		time.Sleep(10 * time.Minute)
		if seen := network.seen(); strings.Contains(seen, "closed map[]") {
			t.Errorf("%s, want some closed", seen)
		}
	}, given.Set("Refresh", 30*time.Second), given.Set("RemoveAfter", 2))
}

// A new backend must get its share of the calls after one refresh interval and one lookup. A
// removed backend must get calls until two consecutive answers lack it. No other connection may be
// closed.
func TestABackendThatIsAddedAndRemoved(t *testing.T) {
	const refresh, jitter = 30 * time.Second, 3 * time.Second
	d := &dnsFake{answers: []string{"a:1 b:1"}}
	inMemory(t, d, func(network *memory, conn *grpc.ClientConn) {
		if got := shares(t, conn, 100); got != "map[a:1:50 b:1:50]" {
			t.Errorf("at first: %s", got)
		}
		d.set("b:1 a:1 c:1 d:1")
		time.Sleep(refresh + jitter)
		shares(t, conn, 4)
		synctest.Wait()
		if got := shares(t, conn, 100); got != "map[a:1:25 b:1:25 c:1:25 d:1:25]" {
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
			if got := shares(t, conn, 100); got != want {
				t.Errorf("after %d answers without two: %s, want %s", answers, got, want)
			}
		}
		if seen := network.seen(); seen != "dialled map[a:1:1 b:1:1 c:1:1 d:1:1], closed map[a:1:1 d:1:1]" {
			t.Errorf("%s", seen)
		}
	}, given.Set("Refresh", refresh))
}
