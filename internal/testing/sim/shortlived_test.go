package sim

import (
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
)

// limitedServer sends GOAWAY on each connection after a number of requests, like nginx, or at an
// age, like Envoy and gRPC's servers.
type limitedServer struct {
	requests int64         // 0 means no limit
	age      time.Duration // 0 means no limit
	crash    time.Duration // the age at which it closes its connections without having answered a call, or 0

	connections atomic.Int64
	wg          sync.WaitGroup
}

// oneConn is a listener that accepts a single connection.
type oneConn struct {
	net.Listener
	conn chan net.Conn
}

func (l *oneConn) Accept() (net.Conn, error) {
	select {
	case c := <-l.conn:
		return c, nil
	default:
		return nil, io.EOF
	}
}

func (*oneConn) Close() error { return nil }

func (s *limitedServer) serve(lis net.Listener) {
	for {
		conn, err := lis.Accept()
		if err != nil {
			return
		}
		s.connections.Add(1)
		server := grpc.NewServer()
		var served atomic.Int64
		b := &Backend{Address: lis.Addr().String(), onCall: func(string) {
			if served.Add(1) == s.requests {
				s.wg.Go(server.GracefulStop)
			}
		}}
		server.RegisterService(&grpc.ServiceDesc{
			ServiceName: "sim.Backend",
			HandlerType: (*any)(nil),
			Methods:     []grpc.MethodDesc{{MethodName: "Who", Handler: b.handleWho}},
		}, struct{}{})
		one := &oneConn{lis, make(chan net.Conn, 1)}
		one.conn <- conn
		if s.crash > 0 {
			b.SetHang(true)
			s.wg.Go(func() {
				sleep(s.crash)
				server.Stop()
			})
		}
		if s.age > 0 {
			s.wg.Go(func() {
				sleep(s.age)
				server.GracefulStop()
			})
		}
		_ = server.Serve(one)
	}
}

// A server that answers calls keeps them, however short its connections are. With the recommended
// options, calls do not wait while its only connection is replaced, but go to the backup. The
// clients run in parallel, each with one call at a time.
func TestServersWithShortConnections(t *testing.T) {
	const clients = 4
	for _, world := range []struct {
		requests int64
		age      time.Duration
		interval time.Duration // between two calls of a client; 0 means that each call follows the last one at once
		calls    int           // of each client
		atBackup int64         // percent of the calls that may go to the backup
	}{
		{requests: 1, calls: 100, atBackup: 70},
		{requests: 100, calls: 250, atBackup: 10},
		{requests: 1000, calls: 750, atBackup: 1},
		{requests: 1, interval: 100 * time.Millisecond, calls: 50},
		{requests: 100, interval: 10 * time.Millisecond, calls: 250, atBackup: 1},
		{requests: 1000, interval: time.Second * clients / 1500, calls: 750, atBackup: 1},
		{age: 300 * time.Millisecond, interval: 20 * time.Millisecond, calls: 250, atBackup: 1},
		{age: time.Second, interval: 20 * time.Millisecond, calls: 250, atBackup: 1},
		{age: 1500 * time.Millisecond, interval: 20 * time.Millisecond, calls: 250, atBackup: 1},
	} {
		for _, query := range []string{"", recommended} {
			name := fmt.Sprintf("requests=%d,age=%v,interval=%v%s", world.requests, world.age, world.interval, query)
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := &limitedServer{requests: world.requests, age: world.age}
					failed, atBackup := callBoth(t, s, query, clients, world.calls, world.interval)
					t.Logf("%d calls on %d connections: %d failed, %d at the backup", clients*world.calls, s.connections.Load(), failed, atBackup)
					most := int64(0)
					if query != "" {
						most = int64(clients*world.calls) * world.atBackup / 100
					}
					if failed > 0 || atBackup > most {
						t.Errorf("%d calls failed and %d went to the backup, want none and at most %d", failed, atBackup, most)
					}
				})
			})
		}
	}
}

// A server that closes each connection 20 ms after the handshake and answers nothing gets at most
// ten connections a minute. If it sends GOAWAY before it closes them, the policies reconnect while
// calls are in flight, and it gets a few more.
func TestCrashLoopBelowFailover(t *testing.T) {
	for _, query := range []string{"", recommended} {
		for _, world := range []struct {
			age     time.Duration
			clients int
			limit   int64
		}{{clients: 1, limit: 10}, {clients: 10, limit: 10}, {age: 10 * time.Millisecond, clients: 10, limit: 12}} {
			synctest.Test(t, func(t *testing.T) {
				s := &limitedServer{age: world.age, crash: 20 * time.Millisecond}
				failed, atBackup := callBoth(t, s, query, world.clients, 590, 100*time.Millisecond)
				n := s.connections.Load()
				t.Logf("GOAWAY %v, %d calls, %d connections in a minute: %d failed, %d at the backup", world.age, world.clients*590, n, failed, atBackup)
				if n < 7 || n > world.limit {
					t.Errorf("%+v%s: %d connections in a minute, want 7 to %d", world, query, n, world.limit)
				}
			})
		}
	}
}

// callBoth makes calls on a channel with two priorities of one endpoint each. The first is s.
func callBoth(t *testing.T, s *limitedServer, query string, clients, calls int, interval time.Duration) (failed, atBackup int64) {
	network := NewNetwork(func(string, ...any) {})
	var tiers [2][]string
	for i, server := range []*limitedServer{s, {}} {
		address := fmt.Sprintf("10.%d.0.1:443", i+1)
		network.SetLink(address, Link{Delay: 100 * time.Microsecond})
		lis, err := network.Listen(address)
		if err != nil {
			t.Fatal(err)
		}
		go server.serve(lis)
		defer server.wg.Wait()
		defer lis.Close()
		tiers[i] = []string{address}
	}
	cc := openTiers(t, network, query, tiers)
	defer func() {
		cc.Close()
		sleep(time.Second) // until the servers have read the end of their connections
	}()
	var failures, backups atomic.Int64
	var wg sync.WaitGroup
	for i := range clients {
		wg.Go(func() {
			sleep(interval / time.Duration(clients) * time.Duration(i))
			for range calls {
				to, err := new(call).invoke(cc, time.Second, false)
				switch {
				case err != nil:
					t.Logf("a call failed: %v", err)
					failures.Add(1)
				case strings.HasPrefix(to, "10.2."):
					backups.Add(1)
				}
				if interval > 0 {
					sleep(interval)
				}
			}
		})
	}
	wg.Wait()
	return failures.Load(), backups.Load()
}
