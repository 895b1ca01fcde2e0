// Package lbtest has fakes for testing load-balancing policies: a ClientConn and subchannels that
// record calls, and a child policy that reports whatever a test tells it to.
package lbtest

import (
	"errors"
	"runtime/debug"
	"slices"
	"sync"
	"testing/synctest"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"
	estats "google.golang.org/grpc/experimental/stats"
	"google.golang.org/grpc/resolver"
)

// Tests produce a lot of garbage. Collecting it less often saves a tenth of the CPU time.
func init() { debug.SetGCPercent(400) }

// ClientConn is a balancer.ClientConn that records calls. Its methods may be called concurrently.
type ClientConn struct {
	balancer.ClientConn // nil; here in case grpc-go adds methods to the interface

	Recorder estats.MetricsRecorder

	mu          sync.Mutex
	states      []balancer.State
	subConns    []*SubConn
	resolveNows int
	onUpdate    func(balancer.State)
}

func (c *ClientConn) OnUpdate(f func(balancer.State)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.onUpdate = f
}

func (c *ClientConn) UpdateState(state balancer.State) {
	c.mu.Lock()
	c.states = append(c.states, state)
	f := c.onUpdate
	c.mu.Unlock()
	if f != nil {
		f(state)
	}
}

func (c *ClientConn) States() []balancer.State {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.states)
}

// State returns the last published state, or IDLE without a picker if there's none.
func (c *ClientConn) State() balancer.State {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.states) == 0 {
		return balancer.State{ConnectivityState: connectivity.Idle}
	}
	return c.states[len(c.states)-1]
}

func (c *ClientConn) NewSubConn(addresses []resolver.Address, opts balancer.NewSubConnOptions) (balancer.SubConn, error) {
	if len(addresses) == 0 {
		return nil, errors.New("lbtest: a subchannel needs an address")
	}
	sc := &SubConn{Addresses: addresses, listener: opts.StateListener}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.subConns = append(c.subConns, sc)
	return sc, nil
}

func (c *ClientConn) SubConns() []*SubConn {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.subConns)
}

func (c *ClientConn) Forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if last := len(c.states) - 1; last > 0 {
		c.states = []balancer.State{c.states[last]}
	}
}

func (c *ClientConn) LiveSubConns() []*SubConn {
	return slices.DeleteFunc(c.SubConns(), (*SubConn).IsShutdown)
}

func (c *ClientConn) SubConn(address string) *SubConn {
	live := c.LiveSubConns()
	for i := len(live) - 1; i >= 0; i-- {
		if live[i].Addresses[0].Addr == address {
			return live[i]
		}
	}
	return nil
}

// CompleteConnects completes connection attempts until no subchannel is waiting for one. If
// dialError returns an error for an address, the attempt fails with it. Otherwise the subchannel
// becomes READY, and its health goes to CONNECTING and then READY. dialError may be nil. Only call
// this in a synctest bubble.
func (c *ClientConn) CompleteConnects(dialError func(resolver.Address) error) {
	answered := make(map[*SubConn]bool)
	for more := true; more; {
		more = false
		synctest.Wait()
		for _, sc := range c.LiveSubConns() {
			if sc.Connects() == 0 || answered[sc] || sc.HasHealthListener() {
				continue
			}
			answered[sc], more = true, true
			sc.Report(connectivity.Connecting, nil)
			if dialError != nil {
				if err := dialError(sc.Addresses[0]); err != nil {
					sc.Report(connectivity.TransientFailure, err)
					continue
				}
			}
			sc.Report(connectivity.Ready, nil)
			synctest.Wait()
			sc.ReportHealth(connectivity.Connecting, nil)
			sc.ReportHealth(connectivity.Ready, nil)
			synctest.Wait()
		}
	}
}

func (c *ClientConn) ResolveNow(resolver.ResolveNowOptions) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.resolveNows++
}

func (c *ClientConn) ResolveNows() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.resolveNows
}

func (c *ClientConn) RemoveSubConn(sc balancer.SubConn) { sc.Shutdown() }

// Target panics. It's deprecated, so policies must get the target from BuildOptions.
func (c *ClientConn) Target() string { panic("Target of a balancer.ClientConn is deprecated") }

func (c *ClientConn) MetricsRecorder() estats.MetricsRecorder {
	if c.Recorder != nil {
		return c.Recorder
	}
	return discardMetrics{}
}

type discardMetrics struct {
	estats.UnimplementedMetricsRecorder
}
