package overload

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/orca"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/understudy-lb/understudy"
	"github.com/understudy-lb/understudy/discovery/failover"
	"github.com/understudy-lb/understudy/internal/rehearse"
)

// backend is a server of the world: a queue in front of workers.
type backend struct {
	healthpb.UnimplementedHealthServer
	health          *health.Server
	world           World
	server          Server
	priority, index int
	start           time.Time
	workers         chan struct{}
	load            load
}

func (b *backend) Watch(r *healthpb.HealthCheckRequest, s healthpb.Health_WatchServer) error {
	return b.health.Watch(r, s)
}

func (b *backend) has(f Fault) bool {
	_, has := b.fault(f)
	return has
}

func (b *backend) fault(f Fault) (factor float64, has bool) {
	now := time.Since(b.start)
	for _, e := range b.world.Events {
		if e.Fault == f && e.Priority == b.priority && (e.Server == all || e.Server == b.index) && now >= e.From && now < e.To {
			return e.Factor, true
		}
	}
	return 0, false
}

func (b *backend) Check(ctx context.Context, _ *healthpb.HealthCheckRequest) (*healthpb.HealthCheckResponse, error) {
	fraction, fails := b.fault(Internal)
	switch {
	case fails && (fraction == 0 || rand.Float64() < fraction):
		return nil, status.Error(codes.Internal, "broken")
	case b.has(Unavailable):
		return nil, status.Error(codes.Unavailable, "broken")
	case b.has(Hang):
		<-ctx.Done()
		return nil, ctx.Err()
	}
	select {
	case b.workers <- struct{}{}: // channels are fair: first in, first out
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	service := b.server.Service
	if factor, slower := b.fault(Slower); slower {
		service = time.Duration(float64(service) * factor)
	}
	if factor, fewer := b.fault(rehearse.Fewer); fewer {
		service = time.Duration(float64(service) / factor)
	}
	b.load.change(1)
	time.Sleep(service)
	b.load.change(-1)
	<-b.workers
	b.load.report(orca.CallMetricsRecorderFromContext(ctx), b.server.Workers)
	return &healthpb.HealthCheckResponse{Status: healthpb.HealthCheckResponse_SERVING}, nil
}

func serveWorld(w World, start time.Time) (listeners map[string]*bufconn.Listener, stop func()) {
	listeners = map[string]*bufconn.Listener{}
	var servers []*grpc.Server
	for p, list := range w.Priorities {
		for i, s := range list {
			l := bufconn.Listen(1 << 13)
			listeners[addressOf(p, i)] = l
			server := grpc.NewServer(orca.CallMetricsServerOption(nil), understudy.Recommended().ServerKeepalive(), grpc.ReadBufferSize(2048), grpc.WriteBufferSize(2048))
			b := &backend{health: health.NewServer(), world: w, server: s, priority: p, index: i, start: start, workers: make(chan struct{}, s.Workers)}
			healthpb.RegisterHealthServer(server, b)
			go server.Serve(l)
			servers = append(servers, server)
		}
	}
	return listeners, func() {
		for _, s := range servers {
			s.Stop()
		}
	}
}

func addressOf(priority, server int) string { return fmt.Sprintf("10.0.%d.%d:1", priority, server+1) }

// memory resolves memory:///0 to the servers of the first priority, or as soon as a fault of this source
// ends.
type memory struct{ world World }

// bubbleStart is the time at which each bubble of testing/synctest, and so each world, starts.
var bubbleStart = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

func (memory) Scheme() string { return "memory" }

func (m memory) Build(target resolver.Target, cc resolver.ClientConn, _ resolver.BuildOptions) (resolver.Resolver, error) {
	p := int(target.Endpoint()[0] - '0')
	var state resolver.State
	for i := range m.world.Priorities[p] {
		state.Endpoints = append(state.Endpoints, resolver.Endpoint{Addresses: []resolver.Address{{Addr: addressOf(p, i)}}})
	}
	now := time.Since(bubbleStart)
	for _, e := range m.world.Events {
		if e.Priority != p || e.Fault != rehearse.SourceSilent && e.Fault != rehearse.SourceFails || now < e.From || now >= e.To {
			continue
		}
		if e.Fault == rehearse.SourceFails {
			cc.ReportError(errors.New("broken"))
		}
		time.AfterFunc(e.To-now, func() { cc.UpdateState(state) })
		return memory{}, nil
	}
	return memory{}, cc.UpdateState(state)
}

func (memory) ResolveNow(resolver.ResolveNowOptions) {}
func (memory) Close()                                {}

// dialer makes a channel to the priorities of a world.
type dialer func(World, ...grpc.DialOption) (*grpc.ClientConn, error)

func recommended(w World, opts ...grpc.DialOption) (*grpc.ClientConn, error) {
	return through("")(w, opts...)
}

// through returns a client of ours with this policy for the endpoints.
func through(policy string) dialer {
	return func(w World, opts ...grpc.DialOption) (*grpc.ClientConn, error) {
		options := understudy.Recommended()
		options.EndpointPolicy = policy
		options.Sources = append(options.Sources, failover.WithResolvers(memory{w}))
		var targets []string
		for p := range w.Priorities {
			targets = append(targets, fmt.Sprintf("memory:///%d", p))
		}
		return understudy.NewClient("failover:///"+strings.Join(targets, ","), options, opts...)
	}
}

// playLibrary returns how many percent of the calls are lost.
func playLibrary(t *testing.T, w World, dial dialer) (percent float64) {
	var calls, lost int
	play(t, w, 1, dial, func(err error, _ time.Duration, _ net.Addr) {
		if calls++; err != nil {
			lost++
		}
	})
	return 100 * float64(lost) / float64(calls)
}

// play sends the calls of a world, and tells how each one ended, how long it took, and which server
// it went to, or nil. It tells one after the other.
func play(t *testing.T, w World, seed uint64, dial dialer, ended func(error, time.Duration, net.Addr)) {
	playClients(t, w, seed, dial, func(_ int, err error, took time.Duration, server net.Addr) { ended(err, took, server) })
}

// playClients is play, and tells the client as well.
func playClients(t *testing.T, w World, seed uint64, dial dialer, ended func(int, error, time.Duration, net.Addr)) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		listeners, stop := serveWorld(w, start)
		connect := grpc.WithContextDialer(network(w, start, listeners))
		var mu sync.Mutex
		var running sync.WaitGroup
		for i := range w.Clients {
			var channels []*grpc.ClientConn // the second one is that of the client after its restart
			for range 2 {
				cc, err := dial(w, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithReadBufferSize(2048), grpc.WithWriteBufferSize(2048), connect)
				if err != nil {
					t.Fatal(err)
				}
				defer cc.Close()
				channels = append(channels, cc)
			}
			running.Go(func() {
				drive(w, start, seed, uint64(i), &running, func(ctx context.Context, began time.Duration) {
					cc := channels[0]
					if w.Restart > 0 && began >= w.Restart {
						cc = channels[1]
					}
					var server peer.Peer
					_, err := healthpb.NewHealthClient(cc).Check(ctx, &healthpb.HealthCheckRequest{}, grpc.Peer(&server))
					mu.Lock()
					defer mu.Unlock()
					if began >= w.From {
						ended(i, err, time.Since(start)-began, server.Addr)
					}
				})
			})
		}
		running.Wait()
		stop()
		time.Sleep(time.Minute) // handlers that still work
	})
}

// drive sends the calls of one client.
func drive(w World, start time.Time, seed, client uint64, running *sync.WaitGroup, call func(context.Context, time.Duration)) {
	random := rand.New(rand.NewPCG(seed, client))
	for time.Since(start) < w.Length {
		load := w.Load
		if w.Spike.Has(time.Since(start)) {
			load = w.Spike.Load
		}
		time.Sleep(seconds(random.ExpFloat64() * float64(w.Clients) / load))
		running.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), w.Deadlines[int(client)%len(w.Deadlines)])
			defer cancel()
			call(ctx, time.Since(start))
		})
	}
}

// A priority becomes six times slower and loses one of its two endpoints at the same moment. The lost
// one must not count as an endpoint that answers, or the other's late answers seem to be its own fault.
func TestLibraryFullAndEndpointLost(t *testing.T) {
	w := filled(World{Clients: 1, Load: 50, Length: 50 * time.Second, Priorities: [][]Server{
		same(2, Server{Workers: 1, Service: 10 * time.Millisecond}), same(2, Server{Workers: 20, Service: 10 * time.Millisecond}),
	}, Events: []Event{
		{From: 20 * time.Second, To: time.Hour, Server: all, Fault: Slower, Factor: 6},
		{From: 20 * time.Second, To: time.Hour, Server: 1, Fault: Down},
	}})
	if lost := playLibrary(t, w, recommended); lost > 4 {
		t.Errorf("%.1f %% of the calls are lost, want at most 4", lost)
	}
}
