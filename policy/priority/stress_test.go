package priority_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/balancer/base"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/lb/hierarchy"
	"github.com/understudy-lb/understudy/internal/testing/lbtest"
	"github.com/understudy-lb/understudy/policy/priority"
)

func threeChildren(t *testing.T, policy string, n int) balancer.ClientConnState {
	raw := fmt.Sprintf(`{"children":{"a":{"config":[{%q:{}}]},"b":{"config":[{%q:{}}]},"c":{"config":[{%q:{}}]}},"priorities":%s}`,
		policy, policy, policy, [...]string{`["a","b","c"]`, `["b","a"]`, `["c"]`, `[]`}[n%4])
	parsed, err := balancer.Get(priority.Name).(balancer.ConfigParser).ParseConfig(json.RawMessage(raw))
	if err != nil {
		t.Fatal(err)
	}
	var state resolver.State
	for _, child := range []string{"a", "b", "c"} {
		for i := range 2 + n%2 {
			e := resolver.Endpoint{Addresses: []resolver.Address{{Addr: fmt.Sprintf("%s%d", child, i)}}}
			state.Endpoints = append(state.Endpoints, hierarchy.Set(e, child))
		}
	}
	return balancer.ClientConnState{ResolverState: state, BalancerConfig: parsed}
}

// grpc-go's policies hold locks while they report. The policy is called and closed in the meantime,
// which must not cause a deadlock.
func TestGRPCGoChildrenReportDuringUpdates(t *testing.T) {
	for _, policy := range []string{"pick_first", "round_robin"} {
		for round := range uint64(5) {
			raceGRPCGo(t, policy, round)
		}
	}
	goleak.VerifyNone(t)
}

func raceGRPCGo(t *testing.T, policy string, seed uint64) {
	cc := &lbtest.ClientConn{}
	b := balancer.Get(priority.Name).Build(cc, balancer.BuildOptions{})
	var workers sync.WaitGroup
	var stop atomic.Bool
	var remaining atomic.Int64
	for half := range uint64(2) {
		workers.Go(func() { reportAtRandom(cc, rand.New(rand.NewPCG(seed, half)), int(half), &remaining, &stop) })
	}
	workers.Go(func() {
		for !stop.Load() {
			b.ExitIdle()
			b.ResolverError(errors.New("no such host"))
		}
	})
	done := make(chan struct{})
	go func() {
		defer close(done)
		for n := range 12 {
			remaining.Store(2000)
			b.UpdateClientConnState(threeChildren(t, policy, n))
		}
		b.Close()
	}()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatalf("%s: an update or Close has not returned for a minute", policy)
	}
	published := len(cc.States())
	stop.Store(true)
	workers.Wait()
	if late := len(cc.States()) - published; late != 0 {
		t.Errorf("%s: %d states published after Close", policy, late)
	}
	if live := cc.LiveSubConns(); len(live) > 0 {
		t.Errorf("%s: Close left the subchannels %v", policy, live)
	}
}

// reportAtRandom makes every second subchannel report states. As on a real channel, the reports of
// one subchannel do not overlap, and begin only after Connect.
func reportAtRandom(cc *lbtest.ClientConn, r *rand.Rand, half int, remaining *atomic.Int64, stop *atomic.Bool) {
	states := []connectivity.State{connectivity.Connecting, connectivity.Ready, connectivity.Idle, connectivity.TransientFailure}
	for ; !stop.Load(); runtime.Gosched() {
		for i, sc := range cc.SubConns() {
			if i%2 == half && sc.Connects() > 0 && !sc.IsShutdown() && remaining.Add(-1) >= 0 {
				sc.Report(states[r.IntN(len(states))], errors.New("connection refused"))
			}
		}
	}
}

// randomBuilder builds children that report random states during each call, on other goroutines,
// and after Close.
type randomBuilder struct{ live atomic.Int64 }

func (*randomBuilder) Name() string { return "wild" }

func (w *randomBuilder) Build(cc balancer.ClientConn, _ balancer.BuildOptions) balancer.Balancer {
	w.live.Add(1)
	return &randomChild{w: w, cc: cc}
}

type randomChild struct {
	w  *randomBuilder
	cc balancer.ClientConn
	mu sync.Mutex
	wg sync.WaitGroup
}

func (c *randomChild) report() {
	s := connectivity.State(rand.IntN(4))
	c.cc.UpdateState(balancer.State{ConnectivityState: s, Picker: base.NewErrPicker(balancer.ErrNoSubConnAvailable)})
	c.cc.ResolveNow(resolver.ResolveNowOptions{})
}

func (c *randomChild) reportConcurrently() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.report()
	c.wg.Go(func() {
		c.report()
		c.mu.Lock()
		defer c.mu.Unlock()
		c.report()
	})
}

func (c *randomChild) UpdateClientConnState(balancer.ClientConnState) error {
	c.reportConcurrently()
	if rand.IntN(3) == 0 {
		return errors.New("no")
	}
	return nil
}
func (c *randomChild) ResolverError(error)                                        { c.reportConcurrently() }
func (c *randomChild) UpdateSubConnState(balancer.SubConn, balancer.SubConnState) {}
func (c *randomChild) ExitIdle()                                                  { c.reportConcurrently() }

func (c *randomChild) Close() { c.reportConcurrently(); c.wg.Wait(); c.report(); c.w.live.Add(-1) }

// A thousand policies are built, used and closed.
func TestChildrenReportAtAnyTime(t *testing.T) {
	w := &randomBuilder{}
	balancer.Register(w)
	for range 1000 {
		cc := &lbtest.ClientConn{}
		b := balancer.Get(priority.Name).Build(cc, balancer.BuildOptions{})
		for n := range 6 {
			b.UpdateClientConnState(threeChildren(t, w.Name(), n))
			b.ExitIdle()
			b.ResolverError(errors.New("x"))
		}
		b.Close()
		after := len(cc.States())
		b.ExitIdle()
		b.ResolverError(errors.New("x"))
		b.UpdateClientConnState(threeChildren(t, w.Name(), 0))
		if late := len(cc.States()); late != after {
			t.Fatalf("%d states published after Close", late-after)
		}
		if live := w.live.Load(); live != 0 {
			t.Fatalf("%d children are open after Close", live)
		}
	}
	goleak.VerifyNone(t)
}
