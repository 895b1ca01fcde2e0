package childlb

import (
	"errors"
	"sync"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/resolver"
)

// OwnsSubConns is implemented by the builders of policies that are known to shut
// down, in Close, every subchannel that they made. gRPC only recommends that, so
// those of all other policies are remembered and shut down for them.
type OwnsSubConns interface{ OwnsSubConns() }

// instance is one built policy, and the ClientConn that it sees.
type instance struct {
	balancer.ClientConn // the parent's

	child    *Child
	name     string
	balancer balancer.Balancer
	state    balancer.State // last reported; only used in events

	remember bool // subchannels: the policy may leave some behind when it closes

	mu       sync.Mutex
	closed   bool
	subConns map[balancer.SubConn]struct{}
}

func newInstance(c *Child, builder balancer.Builder) *instance {
	_, owns := builder.(OwnsSubConns)
	i := &instance{
		ClientConn: c.parent.ClientConn,
		child:      c,
		name:       builder.Name(),
		state:      Connecting(),
		remember:   !owns,
		subConns:   make(map[balancer.SubConn]struct{}),
	}
	i.balancer = builder.Build(i, c.parent.Options)
	if i.balancer == nil {
		return nil
	}
	return i
}

// UpdateState is called by the policy, on its own stack and maybe with its own
// locks held: it only queues.
func (i *instance) UpdateState(state balancer.State) {
	i.child.say(i, state)
}

// ResolveNow is called by the policy, on its own stack.
func (i *instance) ResolveNow(resolver.ResolveNowOptions) {
	if !i.isClosed() {
		i.child.resolveNow()
	}
}

var errClosed = errors.New("a closed policy asked for a subchannel")

// NewSubConn makes a subchannel, and remembers it where the policy cannot be
// relied upon to shut it down.
func (i *instance) NewSubConn(addresses []resolver.Address, opts balancer.NewSubConnOptions) (balancer.SubConn, error) {
	if !i.remember {
		return i.ClientConn.NewSubConn(addresses, opts)
	}
	if i.isClosed() {
		return nil, errClosed
	}
	var sc balancer.SubConn
	listener := opts.StateListener
	opts.StateListener = func(state balancer.SubConnState) { i.subConnReported(sc, state, listener) }
	sc, err := i.ClientConn.NewSubConn(addresses, opts)
	if err != nil {
		return nil, err
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.closed {
		sc.Shutdown()
		return nil, errClosed
	}
	i.subConns[sc] = struct{}{}
	return sc, nil
}

// subConnReported passes a subchannel's state on to the policy that made it.
func (i *instance) subConnReported(sc balancer.SubConn, state balancer.SubConnState, listener func(balancer.SubConnState)) {
	i.mu.Lock()
	_, known := i.subConns[sc]
	if state.ConnectivityState == connectivity.Shutdown {
		delete(i.subConns, sc)
	}
	i.mu.Unlock()
	switch {
	case !known:
	case listener != nil:
		listener(state)
	default:
		i.balancer.UpdateSubConnState(sc, state)
	}
}

func (i *instance) isClosed() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.closed
}

// close closes the policy and shuts down the subchannels that it left. It does
// nothing for a nil instance.
func (i *instance) close() {
	if i == nil {
		return
	}
	i.mu.Lock()
	i.closed = true
	i.mu.Unlock()
	i.balancer.Close()
	i.mu.Lock()
	left := i.subConns
	i.subConns = nil
	i.mu.Unlock()
	for sc := range left {
		sc.Shutdown()
	}
}
