package explain

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"
	estats "google.golang.org/grpc/experimental/stats"
	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/lbconfig"
	"github.com/understudy-lb/understudy/topology"
)

// channel is a ClientConn without a network: its subchannels connect at once, or
// are refused at once where their address is down. So the real policies run, and
// can be asked where calls go.
type channel struct {
	balancer.ClientConn // nil: implements what grpc-go may add

	down func(address string) bool

	mu      sync.Mutex
	events  []func()
	state   balancer.State
	changed chan struct{} // gets a token with each change
}

func newChannel(down func(address string) bool) *channel {
	return &channel{down: down, changed: make(chan struct{}, 1)}
}

// later queues an event: like a channel's, it does not run on the policy's stack.
func (c *channel) later(event func()) {
	c.mu.Lock()
	c.events = append(c.events, event)
	c.mu.Unlock()
	c.wake()
}

func (c *channel) wake() {
	select {
	case c.changed <- struct{}{}:
	default:
	}
}

// UpdateState keeps the picker.
func (c *channel) UpdateState(state balancer.State) {
	c.mu.Lock()
	c.state = state
	c.mu.Unlock()
	c.wake()
}

// NewSubConn makes a subchannel to the first of the addresses.
func (c *channel) NewSubConn(addresses []resolver.Address, opts balancer.NewSubConnOptions) (balancer.SubConn, error) {
	return &subConn{channel: c, address: addresses[0].Addr, listener: opts.StateListener}, nil
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
	address  string
	listener func(balancer.SubConnState)
}

// Connect connects, or is refused, in a moment.
func (s *subConn) Connect() {
	s.channel.later(func() {
		s.listener(balancer.SubConnState{ConnectivityState: connectivity.Connecting})
		if s.channel.down(s.address) {
			s.listener(balancer.SubConnState{
				ConnectivityState: connectivity.TransientFailure,
				ConnectionError:   fmt.Errorf("%s is down", s.address),
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

// quiet is how long nothing must happen for the policies to have settled. Nothing
// takes time here but running.
const quiet = 100 * time.Millisecond

// settle runs the channel's events until nothing happens any more.
func (c *channel) settle(ctx context.Context) error {
	timer := time.NewTimer(quiet)
	defer timer.Stop()
	for {
		c.mu.Lock()
		events := c.events
		c.events = nil
		c.mu.Unlock()
		for _, event := range events {
			event()
		}
		if len(events) > 0 {
			timer.Reset(quiet)
			continue
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-c.changed:
			timer.Reset(quiet)
		case <-timer.C:
			return nil
		}
	}
}

// picks is how many calls are tried. The policies' shares are exact, so that each
// measured one is at most a few calls off.
const picks = 1_000_000

// countPicks builds the tree's policies, with the addresses for which down is true
// out of reach, and returns how many of so many calls go to each address. Where
// calls fail, it returns the error that they fail with.
func countPicks(ctx context.Context, tree topology.Tree, down func(string) bool) (map[string]int, error, error) {
	var policy lbconfig.Policy
	if err := policy.UnmarshalJSON(tree.Config); err != nil {
		return nil, nil, err
	}
	c := newChannel(down)
	root := policy.Builder.Build(c, balancer.BuildOptions{})
	defer root.Close()
	err := root.UpdateClientConnState(balancer.ClientConnState{
		ResolverState:  resolver.State{Endpoints: tree.Endpoints},
		BalancerConfig: policy.Config,
	})
	if err != nil && !errors.Is(err, balancer.ErrBadResolverState) {
		return nil, nil, err
	}
	if err := c.settle(ctx); err != nil {
		return nil, nil, err
	}
	return c.countPicks()
}

func (c *channel) countPicks() (counts map[string]int, callErr, err error) {
	c.mu.Lock()
	picker := c.state.Picker
	c.mu.Unlock()
	if picker == nil {
		return nil, nil, errors.New("the policies published no picker")
	}
	counts = make(map[string]int)
	for range picks {
		result, err := picker.Pick(balancer.PickInfo{Ctx: context.Background()})
		if errors.Is(err, balancer.ErrNoSubConnAvailable) {
			return nil, nil, errors.New("the policies did not settle")
		}
		if err != nil {
			// With drops configured, some calls fail although others do not.
			callErr = err
			continue
		}
		counts[result.SubConn.(*subConn).address]++
	}
	return counts, callErr, nil
}
