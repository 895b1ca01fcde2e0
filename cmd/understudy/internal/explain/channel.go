package explain

import (
	"fmt"
	"sync"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"
	estats "google.golang.org/grpc/experimental/stats"
	"google.golang.org/grpc/resolver"
)

// channel is a ClientConn without a network: its subchannels connect at once, or
// are refused at once where their address is down. So the real policies run, and
// can be asked where calls go.
type channel struct {
	balancer.ClientConn // nil: implements what grpc-go may add

	down func(partAddress) bool

	mu     sync.Mutex
	events []func()
	state  balancer.State
}

// later queues an event: like a channel's, it does not run on the policy's stack.
func (c *channel) later(event func()) {
	c.mu.Lock()
	c.events = append(c.events, event)
	c.mu.Unlock()
}

// run runs the events that are queued, and returns whether there were any.
func (c *channel) run() bool {
	c.mu.Lock()
	events := c.events
	c.events = nil
	c.mu.Unlock()
	for _, event := range events {
		event()
	}
	return len(events) > 0
}

// published returns what the policies published last.
func (c *channel) published() balancer.State {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state
}

// UpdateState keeps the picker.
func (c *channel) UpdateState(state balancer.State) {
	c.mu.Lock()
	c.state = state
	c.mu.Unlock()
}

// NewSubConn makes a subchannel to the first of the addresses.
func (c *channel) NewSubConn(addresses []resolver.Address, opts balancer.NewSubConnOptions) (balancer.SubConn, error) {
	return &subConn{channel: c, address: partAddressOf(addresses[0]), listener: opts.StateListener}, nil
}

// RemoveSubConn does nothing: there is nothing to close.
func (c *channel) RemoveSubConn(balancer.SubConn) {}

// ResolveNow does nothing: a file does not change for being asked.
func (c *channel) ResolveNow(resolver.ResolveNowOptions) {}

// Target returns a name for messages.
func (c *channel) Target() string { return "explain" }

// MetricsRecorder discards.
func (c *channel) MetricsRecorder() estats.MetricsRecorder { return discard{} }

type discard struct {
	estats.UnimplementedMetricsRecorder
}

// subConn is a subchannel without a network.
type subConn struct {
	balancer.SubConn // nil: implements what grpc-go may add

	channel  *channel
	address  partAddress
	listener func(balancer.SubConnState)
}

// Connect connects, or is refused, in a moment.
func (s *subConn) Connect() {
	s.channel.later(func() {
		s.listener(balancer.SubConnState{ConnectivityState: connectivity.Connecting})
		if s.channel.down(s.address) {
			s.listener(balancer.SubConnState{
				ConnectivityState: connectivity.TransientFailure,
				ConnectionError:   fmt.Errorf("%s is down", s.address.dial),
			})
			return
		}
		s.listener(balancer.SubConnState{ConnectivityState: connectivity.Ready})
	})
}

// Shutdown does nothing: there is nothing to close.
func (s *subConn) Shutdown() {}

// UpdateAddresses does nothing: policies of today do not call it.
func (s *subConn) UpdateAddresses([]resolver.Address) {}

// RegisterHealthListener reports a healthy server.
func (s *subConn) RegisterHealthListener(f func(balancer.SubConnState)) {
	s.channel.later(func() { f(balancer.SubConnState{ConnectivityState: connectivity.Ready}) })
}
