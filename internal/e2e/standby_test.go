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

// How often the loss of a tier is measured, and what it may take here at most. That is
// far from what it takes (docs/speed.md), and far from the 10 s of the failover timer: the
// machine may be busy.
const (
	losses    = 9
	takesMost = 3 * time.Second
)

// With a warm standby and fastFailover, over TLS, the next tier answers at once when the
// first has lost its last connection, whether it is refused then or hears nothing.
func TestAWarmStandbyAnswersAtOnce(t *testing.T) {
	for _, reconnect := range []string{"refused", "vanishes"} {
		t.Run(reconnect, func(t *testing.T) {
			var took []time.Duration
			for range losses {
				took = append(took, loseATier(t, reconnect == "vanishes"))
			}
			slices.Sort(took)
			t.Logf("from the stop of the last server to the next tier's first answer: %v at best, %v in the middle, %v at worst of %d", took[0], took[losses/2], took[losses-1], losses)
			if worst := took[losses-1]; worst > takesMost {
				t.Errorf("the next tier answered after %v, want at most %v", worst, takesMost)
			}
		})
	}
}

// loseATier returns how long after the last server of the first tier began to stop the next
// tier answered first. The client cannot be asked when it knew of the loss: a server that
// stops says so in TLS, before any read of the connection fails.
func loseATier(t *testing.T, vanishes bool) time.Duration {
	t.Helper()
	ca := testcert.New(t)
	certificate := ca.Pair("tiers", "tiers.test").Load(t)
	connected := make(chan struct{}, 100) // to the next tier
	near, far := startSecureTier(t, "near", &certificate), startSecureTier(t, "far", &certificate)
	w := &wires{near: near}
	cc := dialTiersBy(t, []grpc.DialOption{
		grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{RootCAs: ca.Pool()})), grpc.WithContextDialer(w.dial),
		grpc.WithStatsHandler(&firstConnections{near: near, connected: connected}),
		given.Dial(given.Set("Authority", "tiers.test"), given.Set("WarmStandby", 1), given.Set("FastFailover", true)),
	}, near, far)
	answered := make(chan time.Time, 1) // by the next tier, first
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	var callers sync.WaitGroup
	defer callers.Wait()
	defer cancel()
	awaitName(ctx, t, cc, "near")
	for range far.servers {
		<-connected
	}
	for range 100 {
		awaitName(ctx, t, cc, "near") // meanwhile the handshakes end
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
			t.Errorf("the next tier answered %v before the first had lost its last server", lost.Sub(at))
		}
		return at.Sub(lost)
	case <-ctx.Done():
		t.Fatalf("the next tier has not answered within %v", limit)
		return 0
	}
}

// wires are the connections of a client to two tiers.
type wires struct {
	near     *tier
	vanishes atomic.Bool // what is sent to that tier's addresses, from now on
}

func (w *wires) dial(ctx context.Context, address string) (net.Conn, error) {
	if w.near.has(address) && w.vanishes.Load() {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return new(net.Dialer).DialContext(ctx, "tcp", address)
}

// firstConnections tells of connections to others than a tier.
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
