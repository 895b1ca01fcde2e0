package weightedroundrobin

import (
	"errors"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/attributes"
	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/childlb"
	"github.com/understudy-lb/understudy/internal/lbconfig"
	"github.com/understudy-lb/understudy/internal/weighted"
)

// child is the policy of one endpoint, what it last reported, and its place in the
// sequence. It is the ClientConn that its policy sees. Its fields are used in
// events only, but for removed.
type child struct {
	balancer.ClientConn // the parent's: subchannels are made there

	parent   *policy
	balancer balancer.Balancer
	endpoint resolver.Endpoint // as the child's policy knows it
	state    balancer.State    // last reported
	removed  atomic.Bool       // closed, or about to be

	weight     uint32         // at least 1; the weights of all children fit an edf.Scheduler
	place      weighted.Place // as of the last picker that had the child, if it is not in the current one
	readySince time.Time      // when it last became READY
	update     uint64         // the last one that had the endpoint
}

func newChild(p *policy) *child {
	c := &child{ClientConn: p.cc, parent: p, state: childlb.Connecting()}
	c.place = weighted.NewPlace(p.config.StartPoint == lbconfig.StartRandom)
	c.balancer = p.leaf.Build(c, p.options)
	p.count[c.state.ConnectivityState]++
	return c
}

// UpdateState is called by the child's policy on its own stack, maybe with its own
// locks held: it only queues.
func (c *child) UpdateState(state balancer.State) {
	c.parent.serializer.Enqueue(func() { c.parent.reported(c, state) })
}

var errRemoved = errors.New("weighted_round_robin: the policy of a removed endpoint asked for a subchannel")

// NewSubConn makes a subchannel, unless the child is to be closed.
func (c *child) NewSubConn(addresses []resolver.Address, opts balancer.NewSubConnOptions) (balancer.SubConn, error) {
	if c.removed.Load() {
		return nil, errRemoved
	}
	return c.ClientConn.NewSubConn(addresses, opts)
}

// ResolveNow asks the parent's channel, unless the child is to be closed.
func (c *child) ResolveNow(opts resolver.ResolveNowOptions) {
	if !c.removed.Load() {
		c.ClientConn.ResolveNow(opts)
	}
}

// updateClientConnState gives the child's policy its endpoint, and the attributes
// that the parent was given.
func (c *child) updateClientConnState(attributes *attributes.Attributes) error {
	err := childlb.Plain(c.balancer.UpdateClientConnState(balancer.ClientConnState{
		ResolverState: resolver.State{Endpoints: []resolver.Endpoint{c.endpoint}, Attributes: attributes},
	}))
	if err != nil {
		c.endpoint = resolver.Endpoint{} // given again with the next update
	}
	return err
}

// remove takes the child out of the parent's counts; from now on what it reports
// is ignored. Its subchannels serve on until close.
func (c *child) remove() {
	c.removed.Store(true)
	c.parent.count[c.state.ConnectivityState]--
	if c.parent.lastFailed == c {
		c.parent.lastFailed = nil
	}
}

// reported handles a state that c reported.
func (p *policy) reported(c *child, state balancer.State) {
	if c.removed.Load() {
		return
	}
	before, now := c.state.ConnectivityState, state.ConnectivityState
	c.state = state
	p.count[before]--
	p.count[now]++
	if before == connectivity.Ready || now == connectivity.Ready {
		p.stale = true
	}
	switch now {
	case connectivity.Ready:
		if before != connectivity.Ready {
			c.readySince = time.Now()
		}
	case connectivity.TransientFailure:
		p.lastFailed = c
		p.stale = p.stale || p.published == connectivity.TransientFailure
	case connectivity.Idle:
		// An endpoint of this policy is always connected, also while nobody
		// calls: that is what keeps a parent's standby ready.
		c.balancer.ExitIdle()
	}
}
