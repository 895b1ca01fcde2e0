package pickfirst

import (
	"context"
	"net"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/test/bufconn"

	core "github.com/understudy-lb/understudy/internal/core/pickfirst"
	"github.com/understudy-lb/understudy/internal/lb/stateattr"
)

// ending is a network whose servers end their connections. Each connection has a server of its own,
// so that a server can end it with GOAWAY.
type ending struct {
	connected func(*grpc.Server)                        // runs when a connection has been dialled; may be nil
	called    func(context.Context, *grpc.Server) error // runs before the answer to a call; may be nil
	latency   time.Duration

	mu      sync.Mutex
	servers []*grpc.Server
	dials   []time.Time
}

func (e *ending) dial(ctx context.Context, _ string) (net.Conn, error) {
	lis := bufconn.Listen(1 << 16)
	var server *grpc.Server
	server = grpc.NewServer(grpc.UnaryInterceptor(func(ctx context.Context, request any, _ *grpc.UnaryServerInfo, answer grpc.UnaryHandler) (any, error) {
		if e.called != nil {
			if err := e.called(ctx, server); err != nil {
				return nil, err
			}
		}
		<-time.After(e.latency)
		return answer(ctx, request)
	}))
	healthpb.RegisterHealthServer(server, health.NewServer())
	go server.Serve(lis)
	e.mu.Lock()
	e.servers, e.dials = append(e.servers, server), append(e.dials, time.Now())
	e.mu.Unlock()
	if e.connected != nil {
		e.connected(server)
	}
	return lis.DialContext(ctx)
}

func (e *ending) dialTimes() []time.Time {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.dials
}

func (e *ending) stop() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, s := range e.servers {
		s.Stop()
	}
}

// A server that answers calls is well, however short its connections are.
func TestServersWithShortConnections(t *testing.T) {
	for name, e := range map[string]*ending{
		"GOAWAY after each call": {called: func(_ context.Context, s *grpc.Server) error {
			go s.GracefulStop()
			return nil
		}},
		"GOAWAY after each answer": {called: func(_ context.Context, s *grpc.Server) error {
			time.AfterFunc(time.Millisecond, s.GracefulStop)
			return nil
		}},
		"GOAWAY at 0.3 s":  {connected: func(s *grpc.Server) { time.AfterFunc(300*time.Millisecond, s.GracefulStop) }},
		"cut after 20 ms":  {connected: func(s *grpc.Server) { time.AfterFunc(20*time.Millisecond, s.Stop) }},
		"cut after a call": {called: func(_ context.Context, s *grpc.Server) error { time.AfterFunc(20*time.Millisecond, s.Stop); return nil }},
		"GOAWAY, slow call": {latency: 50 * time.Millisecond, called: func(_ context.Context, s *grpc.Server) error {
			go s.GracefulStop()
			return nil
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cc, _ := dial(t, []string{"a"}, grpc.WithContextDialer(e.dial))
				failed, begin := 0, time.Now()
				for i := range 50 {
					if _, err := call(cc); err != nil {
						failed++
					}
					advance(time.Until(begin.Add(time.Duration(i+1) * 100 * time.Millisecond)))
				}
				if failed > 0 {
					t.Errorf("%d of 50 calls failed", failed)
				}
				t.Logf("%d of 50 calls failed, on %d connections", failed, len(e.dialTimes()))
				cc.Close()
				e.stop()
			})
		})
	}
}

// A call is picked on a connection just before it is lost, and begins after the connection has been
// judged. gRPC ends such a call and picks again. It must not make the connection count twice.
func TestPickAfterLastCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRecorder(balancer.Get(Name), stateattr.EnableHealthListener)
		defer r.Close()
		r.Update([]string{"a"}, false)
		connect := func() {
			r.Report("a", core.Connecting, nil)
			r.Report("a", core.Ready, nil)
		}
		for range 2 {
			connect()
			r.Call("late")
			picker := r.State().Picker
			r.EndCall("late", false)
			r.Report("a", core.Idle, nil)
			r.Take()
			if result, _ := picker.Pick(balancer.PickInfo{}); result.Done != nil {
				result.Done(balancer.DoneInfo{})
			}
			r.ExitIdle()
			r.Take()
		}
		r.Advance(2 * time.Second)
		connect()
		r.Call("in flight")
		r.Report("a", core.Idle, nil)
		r.Take()
		r.ExitIdle()
		if got := r.Take(); !slices.Equal(got, []string{"publish CONNECTING", "connect a"}) {
			t.Errorf("after two short-lived connections and their backoff, ExitIdle did %q, want it to connect", got)
		}
	})
}

// A server closes each connection 20 ms after the handshake and answers no call. The channel must
// reconnect with gRPC's backoff, however many calls there are.
func TestChannelBacksOffInCrashLoop(t *testing.T) {
	for _, clients := range []int{1, 50} {
		synctest.Test(t, func(t *testing.T) {
			e := &ending{
				connected: func(s *grpc.Server) { time.AfterFunc(20*time.Millisecond, s.Stop) },
				called: func(ctx context.Context, _ *grpc.Server) error {
					<-ctx.Done()
					return ctx.Err()
				},
			}
			cc, _ := dial(t, []string{"a"}, grpc.WithContextDialer(e.dial))
			var wg sync.WaitGroup
			for range clients {
				wg.Go(func() {
					for range 500 {
						_, _ = call(cc)
						<-time.After(100 * time.Millisecond)
					}
				})
			}
			<-time.After(time.Minute)
			times := e.dialTimes()
			t.Logf("%d clients: %d connections in a minute", clients, len(times))
			if clients == 1 { // it has no call in flight when the channel reconnects
				checkBackoffs(t, times)
			}
			if len(times) < 7 || len(times) > 10 {
				t.Errorf("%d clients: %d connections in a minute, at %v, want 7 to 10", clients, len(times), times)
			}
			wg.Wait()
			cc.Close()
			e.stop()
		})
	}
}

// checkBackoffs checks that the second connection comes with the next call, and that later ones come
// 1 s, 1.6 s, 2.56 s and so on after the connection before has been closed, each ±20 %.
func checkBackoffs(t *testing.T, times []time.Time) {
	t.Helper()
	if wait := times[1].Sub(times[0]); wait > 200*time.Millisecond {
		t.Errorf("the second connection came %v after the first, want the next call to connect", wait)
	}
	want := time.Second
	for i := 2; i < len(times); i++ {
		gap := times[i].Sub(times[i-1]) - 20*time.Millisecond
		if gap < want*8/10 || gap > want*12/10 {
			t.Errorf("attempt %d came %v after the connection was lost, want %v ±20 %%", i, gap, want)
		}
		want = want * 16 / 10
	}
}
