// Package lbtest provides what tests of load-balancing policies need: a ClientConn and subchannels
// that record the calls made to them, and a child policy that reports states on command. For tests
// only.
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

// ClientConn is a balancer.ClientConn that records the calls made to it. All methods are safe for
// concurrent use.
type ClientConn struct {
	balancer.ClientConn // nil: supplies methods that grpc-go may add

	// Recorder is the result of MetricsRecorder. If it is nil, metrics are discarded.
	Recorder estats.MetricsRecorder

	mu          sync.Mutex
	states      []balancer.State
	subConns    []*SubConn
	resolveNows int
	onUpdate    func(balancer.State)
}

// OnUpdate sets a function that is called with each state that the policy publishes, on the stack
// of the policy.
func (c *ClientConn) OnUpdate(f func(balancer.State)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.onUpdate = f
}

// UpdateState records state.
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

// State returns the most recently published state. Before the first one, it returns an IDLE state
// without a picker.
func (c *ClientConn) State() balancer.State {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.states) == 0 {
		return balancer.State{ConnectivityState: connectivity.Idle}
	}
	return c.states[len(c.states)-1]
}

// NewSubConn records a subchannel.
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

// SubConns returns all subchannels created so far, in order, including those that were shut down.
func (c *ClientConn) SubConns() []*SubConn {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.subConns)
}

// Live returns the subchannels that have not been shut down, in order.
func (c *ClientConn) Live() []*SubConn {
	return slices.DeleteFunc(c.SubConns(), (*SubConn).IsShutdown)
}

// SubConn returns the newest live subchannel to the address, or nil.
func (c *ClientConn) SubConn(address string) *SubConn {
	live := c.Live()
	for i := len(live) - 1; i >= 0; i-- {
		if live[i].Addresses[0].Addr == address {
			return live[i]
		}
	}
	return nil
}

// Answer completes all connection attempts, including those that start as a result, until none is
// left. down returns the error of attempts to connect to an address, or nil if they succeed; down
// itself may be nil. After a connection has succeeded, Answer also reports the health CONNECTING
// and then READY. It must be called in a bubble.
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

// ResolveNow counts the call.
func (c *ClientConn) ResolveNow(resolver.ResolveNowOptions) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.resolveNows++
}

// ResolveNows returns how many times ResolveNow was called.
func (c *ClientConn) ResolveNows() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.resolveNows
}

// RemoveSubConn shuts sc down.
func (c *ClientConn) RemoveSubConn(sc balancer.SubConn) { sc.Shutdown() }

// Target panics, as other fakes do, because it is deprecated. A policy finds the target in its
// BuildOptions.
func (c *ClientConn) Target() string { panic("Target of a balancer.ClientConn is deprecated") }

// MetricsRecorder returns Recorder, or a recorder that discards metrics if Recorder is nil.
func (c *ClientConn) MetricsRecorder() estats.MetricsRecorder {
	if c.Recorder != nil {
		return c.Recorder
	}
	return discard{}
}

type discard struct {
	estats.UnimplementedMetricsRecorder
}
