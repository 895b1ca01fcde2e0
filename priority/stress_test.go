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

	"github.com/understudy-lb/understudy/internal/hierarchy"
	"github.com/understudy-lb/understudy/internal/testing/lbtest"
	"github.com/understudy-lb/understudy/priority"
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

// grpc-go's policies hold locks while they report (rows P18 and P11 of docs/scenarios.md). The
// policy is called and closed in the meantime, which must not cause a deadlock.
func TestGRPCGoChildrenReportDuringUpdates(t *testing.T) {
	for _, policy := range []string{"pick_first", "round_robin"} {
		for round := range uint64(5) {
			raceStock(t, policy, round)
		}
	}
	goleak.VerifyNone(t)
}

func raceStock(t *testing.T, policy string, seed uint64) {
	cc := &lbtest.ClientConn{}
	b := balancer.Get(priority.Name).Build(cc, balancer.BuildOptions{})
	var others sync.WaitGroup
	var stop atomic.Bool
	var left atomic.Int64
	for half := range uint64(2) {
		others.Go(func() { reportAtRandom(cc, rand.New(rand.NewPCG(seed, half)), int(half), &left, &stop) })
	}
	others.Go(func() {
		for !stop.Load() {
			b.ExitIdle()
			b.ResolverError(errors.New("no such host"))
		}
	})
	done := make(chan struct{})
	go func() {
		defer close(done)
		for n := range 12 {
			left.Store(2000)
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
	others.Wait()
	if late := len(cc.States()) - published; late != 0 {
		t.Errorf("%s: %d states published after Close", policy, late)
	}
	if live := cc.Live(); len(live) > 0 {
		t.Errorf("%s: Close left the subchannels %v", policy, live)
	}
}

// reportAtRandom makes every second subchannel report states. As on a real channel, the reports of
// one subchannel do not overlap, and begin only after Connect.
func reportAtRandom(cc *lbtest.ClientConn, r *rand.Rand, half int, left *atomic.Int64, stop *atomic.Bool) {
	states := []connectivity.State{connectivity.Connecting, connectivity.Ready, connectivity.Idle, connectivity.TransientFailure}
	for ; !stop.Load(); runtime.Gosched() {
		for i, sc := range cc.SubConns() {
			if i%2 == half && sc.Connects() > 0 && !sc.IsShutdown() && left.Add(-1) >= 0 {
				sc.Report(states[r.IntN(len(states))], errors.New("connection refused"))
			}
		}
	}
}

// wildBuilder builds children that report during each call, on goroutines of their own, and after
// Close.
type wildBuilder struct{ live atomic.Int64 }

func (*wildBuilder) Name() string { return "wild" }

func (w *wildBuilder) Build(cc balancer.ClientConn, _ balancer.BuildOptions) balancer.Balancer {
	w.live.Add(1)
	return &wild{w: w, cc: cc}
}

type wild struct {
	w  *wildBuilder
	cc balancer.ClientConn
	mu sync.Mutex
	wg sync.WaitGroup
}

func (c *wild) say() {
	s := connectivity.State(rand.IntN(4))
	c.cc.UpdateState(balancer.State{ConnectivityState: s, Picker: base.NewErrPicker(balancer.ErrNoSubConnAvailable)})
	c.cc.ResolveNow(resolver.ResolveNowOptions{})
}

func (c *wild) act() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.say()
	c.wg.Go(func() {
		c.say()
		c.mu.Lock()
		defer c.mu.Unlock()
		c.say()
	})
}

func (c *wild) UpdateClientConnState(balancer.ClientConnState) error {
	c.act()
	if rand.IntN(3) == 0 {
		return errors.New("no")
	}
	return nil
}
func (c *wild) ResolverError(error)                                        { c.act() }
func (c *wild) UpdateSubConnState(balancer.SubConn, balancer.SubConnState) {}
func (c *wild) ExitIdle()                                                  { c.act() }

func (c *wild) Close() { c.act(); c.wg.Wait(); c.say(); c.w.live.Add(-1) }

// A thousand policies are built, used and closed (row P11 of docs/scenarios.md).
func TestChildrenReportAtAnyTime(t *testing.T) {
	w := &wildBuilder{}
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
