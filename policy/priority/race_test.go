package priority

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/config/lbconfig"
	core "github.com/understudy-lb/understudy/internal/core/priority"
	"github.com/understudy-lb/understudy/internal/testing/lbtest"
	scenario "github.com/understudy-lb/understudy/internal/testing/priorityscenario"
)

// noisy builds children that report during each call, on other goroutines, and after Close. Like
// grpc-go's pick_first, a child holds a lock while it is called and while it reports. A policy that
// calls a child during the child's report would deadlock.
type noisy struct {
	ended sync.WaitGroup
	open  atomic.Int64
}

func (b *noisy) Name() string { return "noisy" }

func (b *noisy) Build(cc balancer.ClientConn, _ balancer.BuildOptions) balancer.Balancer {
	c := &noisyChild{b: b, cc: cc, done: make(chan struct{})}
	b.open.Add(1)
	c.report()
	b.ended.Add(1)
	go func() {
		defer b.ended.Done()
		for range 1000 {
			select {
			case <-c.done:
				c.report()
				return
			default:
				c.report()
			}
		}
	}()
	return c
}

type noisyChild struct {
	b    *noisy
	cc   balancer.ClientConn
	mu   sync.Mutex
	done chan struct{}
}

func (c *noisyChild) report() {
	c.mu.Lock()
	defer c.mu.Unlock()
	states := []core.State{core.Idle, core.Connecting, core.Ready, core.TransientFailure}
	r := scenario.Report{State: states[rand.IntN(len(states))]}
	c.cc.UpdateState(balancer.State{ConnectivityState: grpcStates[r.State], Picker: picker{"noisy", r}})
	if rand.IntN(4) == 0 {
		c.cc.ResolveNow(resolver.ResolveNowOptions{})
	}
}

func (c *noisyChild) UpdateClientConnState(balancer.ClientConnState) error {
	c.report()
	if rand.IntN(4) == 0 {
		return errors.New("bad")
	}
	return nil
}

func (c *noisyChild) ResolverError(error)                                        { c.report() }
func (c *noisyChild) UpdateSubConnState(balancer.SubConn, balancer.SubConnState) {}
func (c *noisyChild) ExitIdle()                                                  { c.report() }

func (c *noisyChild) Close() {
	c.report()
	close(c.done)
	c.b.open.Add(-1)
}

// All methods are called at the same time. Nothing may be published after Close.
func TestConcurrency(t *testing.T) {
	for range 20 {
		cc := &lbtest.ClientConn{}
		var closed, late atomic.Bool
		cc.OnUpdate(func(balancer.State) {
			if closed.Load() {
				late.Store(true)
			}
		})
		b := &noisy{}
		p := newBuilder(Name).Build(cc, balancer.BuildOptions{})
		var callers sync.WaitGroup
		call := func(f func(i int)) {
			callers.Go(func() {
				for i := range 50 {
					f(i)
				}
			})
		}
		call(func(i int) { p.UpdateClientConnState(noisyState(b, i)) })
		call(func(int) { p.ResolverError(errors.New("no such host")) })
		call(func(int) { p.ExitIdle() })
		callers.Go(func() {
			for range 20 {
				p.ExitIdle()
			}
			p.Close()
			closed.Store(true)
		})
		callers.Wait()
		b.ended.Wait()
		p.UpdateClientConnState(noisyState(b, 1))
		p.ResolverError(errors.New("no such host"))
		p.ExitIdle()
		p.Close()
		if late.Load() {
			t.Fatal("published after Close had returned")
		}
		if n := b.open.Load(); n != 0 {
			t.Fatalf("%d children were not closed", n)
		}
	}
}

// noisyState returns the content of update i. The children change every few updates, and timers
// fire at once.
func noisyState(b balancer.Builder, i int) balancer.ClientConnState {
	c := &lbconfig.Priority{
		Children:              map[string]lbconfig.PriorityChild{},
		FailoverTimeout:       lbconfig.Duration(time.Microsecond),
		ChildRetention:        lbconfig.Duration(time.Microsecond),
		RemovedChildRetention: lbconfig.Duration(i % 2 * 1000),
	}
	for n := range 3 {
		name := fmt.Sprintf("p%d", (i/4+n)%5)
		c.Children[name] = lbconfig.PriorityChild{Config: lbconfig.Policy{Builder: b}, IgnoreReresolutionRequests: n == 0}
		c.Priorities = append(c.Priorities, name)
	}
	return balancer.ClientConnState{BalancerConfig: c}
}

func TestReportsOfUnusedChildrenAreNotPublished(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRecorder()
		defer r.Close()
		r.Update(update("p0", "p1"))
		r.Report("p0", failed)
		r.Report("p1", ready)
		r.Take()
		for range 100 {
			r.Report("p0", failed)
			r.Report("p0", connecting)
		}
		if got := r.Take(); len(got) > 0 {
			t.Errorf("policy did %q, want nothing", got)
		}
	})
}
