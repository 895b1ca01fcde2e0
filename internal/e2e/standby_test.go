package e2e

import (
	"context"
	"crypto/tls"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/stats"

	"github.com/understudy-lb/understudy/internal/testing/given"
	"github.com/understudy-lb/understudy/internal/testing/testcert"
)

// measurements is the number of measurements. maxTime is the limit for each measured time. It is
// far above the usual time (docs/speed.md), because the machine may be busy, and below the failover
// timeout.
const (
	measurements = 9
	maxTime      = 8 * time.Second
)

// With a warm standby and Overflow, the next priority answers as soon as the last connection is
// lost, whether attempts to reconnect are refused or hang.
func TestWarmStandbyAnswersImmediately(t *testing.T) {
	t.Parallel()
	for _, reconnect := range []string{"refused", "vanishes"} {
		t.Run(reconnect, func(t *testing.T) {
			var times []time.Duration
			for range measurements {
				times = append(times, measureFailover(t, reconnect == "vanishes"))
			}
			slices.Sort(times)
			t.Logf("from the stop of the last server to the next priority's first answer: %v at best, %v in the middle, %v at worst of %d", times[0], times[measurements/2], times[measurements-1], measurements)
			if worst := times[measurements-1]; worst > maxTime {
				t.Errorf("the next priority answered after %v, want at most %v", worst, maxTime)
			}
		})
	}
}

// measureFailover stops the servers of the first priority and returns the time until the next
// priority answers. It starts the clock before it stops the last server, because servers with TLS
// notify their clients before the connections end.
func measureFailover(t *testing.T, hangs bool) time.Duration {
	t.Helper()
	ca := testcert.New(t)
	certificate := ca.Pair("tiers", "tiers.test").Load(t)
	connected := make(chan struct{}, 100)
	near, far := startSecureGroup(t, "near", &certificate), startSecureGroup(t, "far", &certificate)
	d := &networkDialer{near: near}
	cc := newClient(t, "file://"+endpointsFile(t, endpoints(near.addresses(), far.addresses())),
		grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{RootCAs: ca.Pool()})), grpc.WithContextDialer(d.dial),
		grpc.WithStatsHandler(&firstConnections{near: near, connected: connected}),
		given.Dial(given.Set("Authority", "tiers.test"), given.Set("WarmStandby", 1), given.Set("Overflow", true)))
	answered := make(chan time.Time, 1)
	ctx, cancel := context.WithTimeout(context.Background(), eventTimeout)
	var callers sync.WaitGroup
	defer callers.Wait()
	defer cancel()
	awaitName(ctx, t, cc, "near")
	for range far.servers {
		<-connected
	}
	for range 100 {
		awaitName(ctx, t, cc, "near") // the handshakes with all servers are complete by then
	}
	for range 4 {
		callers.Go(func() {
			for tick := time.Tick(time.Millisecond); ctx.Err() == nil; <-tick {
				if a, err := who(ctx, cc); err == nil && a.name == "far" {
					select {
					case answered <- time.Now():
					default:
					}
				}
			}
		})
	}
	d.hangs.Store(hangs)
	var stopped time.Time
	for _, s := range near.servers {
		stopped = time.Now()
		s.grpc.Stop()
	}
	select {
	case answeredAt := <-answered:
		if answeredAt.Before(stopped) {
			t.Errorf("the next priority answered %v before the first had lost its last server", stopped.Sub(answeredAt))
		}
		return answeredAt.Sub(stopped)
	case <-ctx.Done():
		t.Fatalf("the next priority has not answered within %v", eventTimeout)
		return 0
	}
}

type networkDialer struct {
	near  *serverGroup
	hangs atomic.Bool
}

func (d *networkDialer) dial(ctx context.Context, address string) (net.Conn, error) {
	if d.near.has(address) && d.hangs.Load() {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return new(net.Dialer).DialContext(ctx, "tcp", address)
}

type firstConnections struct {
	stats.Handler
	near      *serverGroup
	connected chan<- struct{}
}

type connectionKey struct{}

func (*firstConnections) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }
func (*firstConnections) HandleRPC(context.Context, stats.RPCStats)                       {}

func (*firstConnections) TagConn(ctx context.Context, info *stats.ConnTagInfo) context.Context {
	return context.WithValue(ctx, connectionKey{}, info.RemoteAddr.String())
}

func (f *firstConnections) HandleConn(ctx context.Context, s stats.ConnStats) {
	if _, begins := s.(*stats.ConnBegin); begins && !f.near.has(ctx.Value(connectionKey{}).(string)) {
		select {
		case f.connected <- struct{}{}:
		default:
		}
	}
}
