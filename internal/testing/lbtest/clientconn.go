// Package lbtest has what tests of load-balancing policies need: a ClientConn and subchannels that
// record the calls made to them, and a child policy that reports the states that the test wants.
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
// by several goroutines.
type ClientConn struct {
	balancer.ClientConn // nil, for methods that grpc-go may add

	// Recorder is what MetricsRecorder returns. If it is nil, metrics are discarded.
	Recorder estats.MetricsRecorder

	mu          sync.Mutex
	states      []balancer.State
	subConns    []*SubConn
	resolveNows int
	onUpdate    func(balancer.State)
}

// OnUpdate sets a function that is called with each state that the policy publishes, on the
// policy's stack.
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

// States returns the states published so far, oldest first.
func (c *ClientConn) States() []balancer.State {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.states)
}

// State returns the last published state. Before the first one, it is IDLE and has no picker.
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

// SubConns returns all subchannels in the order of their creation, including those that were shut
// down.
func (c *ClientConn) SubConns() []*SubConn {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.subConns)
}

// Live returns the subchannels that were not shut down.
func (c *ClientConn) Live() []*SubConn {
	return slices.DeleteFunc(c.SubConns(), (*SubConn).IsShutdown)
}

// SubConn returns the newest live subchannel to an address, or nil.
func (c *ClientConn) SubConn(address string) *SubConn {
	live := c.Live()
	for i := len(live) - 1; i >= 0; i-- {
		if live[i].Addresses[0].Addr == address {
			return live[i]
		}
	}
	return nil
}

// Answer completes all connection attempts, and those that they cause, until there are none.
// Attempts to an address fail with the error that down returns; down may be nil. A subchannel that
// is connected also reports the health CONNECTING and then READY. Answer must be called in a
// synctest bubble.
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

// Target panics, because it is deprecated: a policy has the target in its BuildOptions.
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
