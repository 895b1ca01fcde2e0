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

// clientConn is the ClientConn of the children. With overflow, it marks their subchannels, so that a
// pick knows its endpoint.
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

// RemoveSubConn implements a deprecated method that some policies still call.
func (c *clientConn) RemoveSubConn(sc balancer.SubConn) { sc.Shutdown() }

// UpdateAddresses implements a deprecated method that some policies still call.
func (c *clientConn) UpdateAddresses(sc balancer.SubConn, addresses []resolver.Address) {
	sc.UpdateAddresses(addresses)
}

// subConn is a subchannel with what its endpoint's answers say. Below this policy, pickers return
// it, and this policy's picker returns what is in it.
type subConn struct {
	balancer.SubConn
	below    func() *func(balancer.DoneInfo) // see EndWith
	shared   atomic.Pointer[shared]
	left     atomic.Int32 // calls until one is timed
	endpoint atomic.Pointer[shareEndpoint]
}

// shareEndpoint is a subchannel's endpoint in a share. A share has endpoints of its own, because an
// update may turn Overflow off and on while the subchannels stay.
type shareEndpoint struct {
	share    *childShare
	endpoint share.Endpoint // guarded by share
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

// forget tells the share that the connection is lost.
func (s *subConn) forget() {
	if at := s.endpoint.Load(); at != nil {
		at.share.with(func(share *share.Share, _ time.Duration) { share.Forget(&at.endpoint) })
	}
}

var uncounted func(balancer.DoneInfo) // nil

func newSubConn(parents balancer.SubConn) *subConn {
	return &subConn{SubConn: parents, below: func() *func(balancer.DoneInfo) { return &uncounted }}
}

// shared is the Done function of all untimed calls to a subchannel that begin between two changes of
// the view. One for each call would cost more than the rest of a pick.
type shared struct {
	view  *share.View // belongs to one share
	below *func(balancer.DoneInfo)
	done  func(balancer.DoneInfo)
}

func (s *subConn) untimed(c *childShare, view *share.View) func(balancer.DoneInfo) {
	below, d := s.below(), s.shared.Load()
	if d == nil || d.view != view || d.below != below {
		d = &shared{view, below, c.untimed(view.Stamp, *below)}
		s.shared.Store(d)
	}
	return d.done
}

// isTimed reports whether a call is timed, which one of every calls is. The gaps are random, because
// callers may take turns.
func (s *subConn) isTimed(every uint32) bool {
	left := s.left.Add(-1)
	if left > 0 {
		return false
	}
	s.left.Store(1 + rand.Int32N(2*int32(every)-1))
	return left == 0
}

// AddUser implements shell.Counted. The picker never changes.
func (s *subConn) AddUser(shell.CountedUser) {}

// Picker implements shell.Counted.
func (s *subConn) Picker() balancer.Picker { return &shell.Fixed{SubConn: s} }

// EndWith implements shell.Ender.
func (s *subConn) EndWith(below func() *func(balancer.DoneInfo)) { s.below = below }

// unwrap replaces our subchannel by the parent's, and adds the Done function that was left to it. It
// also returns our subchannel, or nil.
func unwrap(result balancer.PickResult) (balancer.PickResult, *subConn) {
	s, ok := result.SubConn.(*subConn)
	if !ok {
		return result, nil
	}
	result.SubConn, result.Done = s.SubConn, shell.Then(*s.below(), result.Done)
	return result, s
}
