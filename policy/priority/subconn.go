package priority

import (
	"math/rand/v2"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/core/share"
	"github.com/understudy-lb/understudy/internal/lb/shell"
)

// clientConn wraps the children's subchannels if there's overflow. That's how we know which
// endpoint was picked.
type clientConn struct {
	balancer.ClientConn
	marks *atomic.Bool
}

func (c *clientConn) NewSubConn(addresses []resolver.Address, opts balancer.NewSubConnOptions) (balancer.SubConn, error) {
	if !c.marks.Load() {
		return c.ClientConn.NewSubConn(addresses, opts)
	}
	s, listener := newSubConn(nil), opts.StateListener
	opts.StateListener = func(state balancer.SubConnState) {
		if state.ConnectivityState != connectivity.Ready {
			s.forget()
		}
		if listener != nil {
			listener(state)
		}
	}
	conn, err := c.ClientConn.NewSubConn(addresses, opts)
	if err != nil {
		return nil, err
	}
	s.SubConn = conn
	return s, nil
}

// RemoveSubConn is deprecated, but some policies still call it.
func (c *clientConn) RemoveSubConn(sc balancer.SubConn) { sc.Shutdown() }

// UpdateAddresses is deprecated, but some policies still call it.
func (c *clientConn) UpdateAddresses(sc balancer.SubConn, addresses []resolver.Address) {
	sc.UpdateAddresses(addresses)
}

// subConn is what pickers below this policy return. We unwrap it.
type subConn struct {
	balancer.SubConn
	below    func() *func(balancer.DoneInfo) // see EndWith
	shared   atomic.Pointer[shared]
	left     atomic.Int32 // calls left until one is timed
	endpoint atomic.Pointer[shareEndpoint]
}

// shareEndpoint is a subchannel's endpoint in a share. An update can turn Overflow off and on while
// the subchannels stay, so we need to know which share it belongs to.
type shareEndpoint struct {
	share    *childShare
	endpoint share.Endpoint // guarded by the share's lock
}

func (s *subConn) endpointIn(c *childShare) *share.Endpoint {
	at := s.endpoint.Load()
	if at == nil || at.share != c {
		before := at
		if at = (&shareEndpoint{share: c}); !s.endpoint.CompareAndSwap(before, at) {
			return s.endpointIn(c)
		}
	}
	return &at.endpoint
}

func (s *subConn) forget() {
	if at := s.endpoint.Load(); at != nil {
		at.share.with(func(share *share.Share, _ time.Duration) { share.Forget(&at.endpoint) })
	}
}

var uncounted func(balancer.DoneInfo) // always nil

func newSubConn(parents balancer.SubConn) *subConn {
	return &subConn{SubConn: parents, below: func() *func(balancer.DoneInfo) { return &uncounted }}
}

// shared has one Done function for all untimed calls until the view changes. If we made one for
// each call, it would cost more than the rest of the pick.
type shared struct {
	view  *share.View // belongs to one particular share
	below *func(balancer.DoneInfo)
	done  func(balancer.DoneInfo)
}

func (s *subConn) untimed(c *childShare, view *share.View) func(balancer.DoneInfo) {
	below, d := s.below(), s.shared.Load()
	if d == nil || d.view != view || d.below != below {
		d = &shared{view, below, c.untimed(view.Stamp, s.endpointIn(c), *below)}
		s.shared.Store(d)
	}
	return d.done
}

func (s *subConn) isTimed(every uint32) bool {
	// Callers may take turns, so we time calls at random intervals.
	left := s.left.Add(-1)
	if left > 0 {
		return false
	}
	s.left.Store(1 + rand.Int32N(2*int32(every)-1))
	return left == 0
}

// AddUser implements shell.Counted. The picker never changes.
func (s *subConn) AddUser(shell.CountedUser) {}

func (s *subConn) Picker() balancer.Picker { return &shell.Fixed{SubConn: s} }

func (s *subConn) EndWith(below func() *func(balancer.DoneInfo)) { s.below = below }

func unwrap(result balancer.PickResult) (balancer.PickResult, *subConn) {
	s, ok := result.SubConn.(*subConn)
	if !ok {
		return result, nil
	}
	result.SubConn, result.Done = s.SubConn, shell.Then(*s.below(), result.Done)
	return result, s
}
