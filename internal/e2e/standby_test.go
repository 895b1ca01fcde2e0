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

// losses is the number of measurements. takesMost limits the time of each. It is far above the
// usual time (docs/speed.md), because the machine may be busy, and below the failover timeout.
const (
	losses    = 9
	takesMost = 8 * time.Second
)

// With a warm standby and FastFailover, the next priority answers as soon as the last connection is
// lost, whether attempts to reconnect are refused or hang.
func TestWarmStandbyAnswersImmediately(t *testing.T) {
	for _, reconnect := range []string{"refused", "vanishes"} {
		t.Run(reconnect, func(t *testing.T) {
			var took []time.Duration
			for range losses {
				took = append(took, loseATier(t, reconnect == "vanishes"))
			}
			slices.Sort(took)
			t.Logf("from the stop of the last server to the next priority's first answer: %v at best, %v in the middle, %v at worst of %d", took[0], took[losses/2], took[losses-1], losses)
			if worst := took[losses-1]; worst > takesMost {
				t.Errorf("the next priority answered after %v, want at most %v", worst, takesMost)
			}
		})
	}
}

// loseATier stops the servers of the first priority and returns the time until the next one
// answers. The clock starts before the last server is stopped, because servers with TLS notify
// their clients before the connections end.
func loseATier(t *testing.T, vanishes bool) time.Duration {
	t.Helper()
	ca := testcert.New(t)
	certificate := ca.Pair("tiers", "tiers.test").Load(t)
	connected := make(chan struct{}, 100)
	near, far := startSecureTier(t, "near", &certificate), startSecureTier(t, "far", &certificate)
	w := &wires{near: near}
	cc := dialTiersBy(t, []grpc.DialOption{
		grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{RootCAs: ca.Pool()})), grpc.WithContextDialer(w.dial),
		grpc.WithStatsHandler(&firstConnections{near: near, connected: connected}),
		given.Dial(given.Set("Authority", "tiers.test"), given.Set("WarmStandby", 1), given.Set("FastFailover", true)),
	}, near, far)
	answered := make(chan time.Time, 1)
	ctx, cancel := context.WithTimeout(context.Background(), limit)
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
			for ctx.Err() == nil {
				if a, err := who(ctx, cc); err == nil && a.name == "far" {
					select {
					case answered <- time.Now():
					default:
					}
				}
			}
		})
	}
	w.vanishes.Store(vanishes)
	var lost time.Time
	for _, s := range near.servers {
		lost = time.Now()
		s.grpc.Stop()
	}
	select {
	case at := <-answered:
		if at.Before(lost) {
			t.Errorf("the next priority answered %v before the first had lost its last server", lost.Sub(at))
		}
		return at.Sub(lost)
	case <-ctx.Done():
		t.Fatalf("the next priority has not answered within %v", limit)
		return 0
	}
}

type wires struct {
	near     *tier
	vanishes atomic.Bool
}

func (w *wires) dial(ctx context.Context, address string) (net.Conn, error) {
	if w.near.has(address) && w.vanishes.Load() {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return new(net.Dialer).DialContext(ctx, "tcp", address)
}

type firstConnections struct {
	stats.Handler
	near      *tier
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
