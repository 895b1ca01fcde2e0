package pickfirst

import (
	"fmt"
	"runtime"
	"testing"

	"google.golang.org/grpc/balancer"
	grpcpickfirst "google.golang.org/grpc/balancer/pickfirst"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/testing/lbtest"
)

// sink is a fake channel that takes little memory, because it keeps only the last listener and
// picker.
type sink struct {
	lbtest.ClientConn
	conn     quietSubConn
	listener func(balancer.SubConnState)
	picker   balancer.Picker
}

type quietSubConn struct{ balancer.SubConn }

func (*quietSubConn) Connect()  {}
func (*quietSubConn) Shutdown() {}

func (s *sink) NewSubConn(_ []resolver.Address, opts balancer.NewSubConnOptions) (balancer.SubConn, error) {
	s.listener = opts.StateListener
	return &s.conn, nil
}
func (*quietSubConn) RegisterHealthListener(func(balancer.SubConnState)) {}

func (s *sink) UpdateState(state balancer.State) { s.picker = state.Picker }

func bringUp(b balancer.Builder, sinks []sink, states []resolver.State) []balancer.Balancer {
	policies := make([]balancer.Balancer, len(sinks))
	for i := range sinks {
		policies[i] = b.Build(&sinks[i], balancer.BuildOptions{})
		policies[i].UpdateClientConnState(balancer.ClientConnState{ResolverState: states[i]})
		sinks[i].listener(balancer.SubConnState{ConnectivityState: connectivity.Connecting})
		sinks[i].listener(balancer.SubConnState{ConnectivityState: connectivity.Ready})
	}
	return policies
}

func newSinks(n int) ([]sink, []resolver.State) {
	states := make([]resolver.State, n)
	for i := range states {
		states[i] = endpoints(fmt.Sprintf("10.0.%d.%d:80", i/256, i%256))
	}
	return make([]sink, n), states
}

func bytesPerPolicy(b balancer.Builder) float64 {
	const n = 10_000
	sinks, states := newSinks(n)
	var before, after runtime.MemStats
	for range 3 { // empty the sync.Pools that earlier tests have filled
		runtime.GC()
	}
	runtime.ReadMemStats(&before)
	policies := bringUp(b, sinks, states)
	runtime.GC()
	runtime.ReadMemStats(&after)
	runtime.KeepAlive(policies)
	runtime.KeepAlive(sinks)
	runtime.KeepAlive(states)
	return (float64(after.HeapAlloc) - float64(before.HeapAlloc)) / n
}

func TestMemoryPerPolicy(t *testing.T) {
	ours, theirs := bytesPerPolicy(balancer.Get(Name)), bytesPerPolicy(balancer.Get(grpcpickfirst.Name))
	t.Logf("bytes each: %.0f, gRPC-Go's %.0f", ours, theirs)
	if ours > theirs/2 {
		t.Errorf("a policy uses %.0f bytes, want at most half of grpc-go's %.0f", ours, theirs)
	}
}

func TestPoliciesRunNoGoroutines(t *testing.T) {
	const n = 1000
	before := runtime.NumGoroutine()
	sinks, states := newSinks(n)
	for i := range states {
		states[i].Endpoints[0].Addresses = append(states[i].Endpoints[0].Addresses, resolver.Address{Addr: "second"})
	}
	connecting := make([]sink, n)
	policies := bringUp(balancer.Get(Name), sinks, states)
	for i := range connecting {
		p := balancer.Get(Name).Build(&connecting[i], balancer.BuildOptions{})
		p.UpdateClientConnState(balancer.ClientConnState{ResolverState: states[i]})
		policies = append(policies, p)
	}
	if now := runtime.NumGoroutine(); now > before+10 {
		t.Errorf("%d policies run %d goroutines", len(policies), now-before)
	}
	for _, p := range policies {
		p.Close()
	}
}
