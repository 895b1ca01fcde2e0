// Package lbtest has fakes for tests of load-balancing policies: a ClientConn and subchannels that
// record calls, and a child policy whose states the test sets.
package lbtest

import (
	"errors"
	"slices"
	"sync"
	"testing/synctest"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"
	estats "google.golang.org/grpc/experimental/stats"
	"google.golang.org/grpc/resolver"
)

// ClientConn is a balancer.ClientConn that records the calls made to it. Its methods may be called
// concurrently.
type ClientConn struct {
	balancer.ClientConn // nil, for methods that grpc-go may add

	// MetricsRecorder returns Recorder. If it is nil, metrics are discarded.
	Recorder estats.MetricsRecorder

	mu          sync.Mutex
	states      []balancer.State
	subConns    []*SubConn
	resolveNows int
	onUpdate    func(balancer.State)
}

// OnUpdate sets a function that is called with each published state, on the policy's stack.
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

// State returns the last published state. Before the first one, it is IDLE without a picker.
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

// Forget forgets all published states but the last one, so that their memory can be freed.
func (c *ClientConn) Forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if last := len(c.states) - 1; last > 0 {
		c.states = []balancer.State{c.states[last]}
	}
}

func (c *ClientConn) Live() []*SubConn {
	return slices.DeleteFunc(c.SubConns(), (*SubConn).IsShutdown)
}

func (c *ClientConn) SubConn(address string) *SubConn {
	live := c.Live()
	for i := len(live) - 1; i >= 0; i-- {
		if live[i].Addresses[0].Addr == address {
			return live[i]
		}
	}
	return nil
}

// Answer completes all connection attempts until there are none. An attempt fails with the error
// that down returns; down may be nil. A connected subchannel also reports its health as CONNECTING
// and then READY. Answer must be called in a synctest bubble.
func (c *ClientConn) Answer(down func(resolver.Address) error) {
	answered := make(map[*SubConn]bool)
	for more := true; more; {
		more = false
		synctest.Wait()
		for _, sc := range c.Live() {
			if sc.Connects() == 0 || answered[sc] || sc.HasHealthListener() {
				continue
			}
			answered[sc], more = true, true
			sc.Report(connectivity.Connecting, nil)
			if down != nil {
				if err := down(sc.Addresses[0]); err != nil {
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

// Target panics, because it is deprecated. Policies find the target in their BuildOptions.
func (c *ClientConn) Target() string { panic("Target of a balancer.ClientConn is deprecated") }

// MetricsRecorder returns Recorder or, if that is nil, a recorder that discards metrics.
func (c *ClientConn) MetricsRecorder() estats.MetricsRecorder {
	if c.Recorder != nil {
		return c.Recorder
	}
	return discard{}
}

type discard struct {
	estats.UnimplementedMetricsRecorder
}
