package priority

import (
	"sync/atomic"

	"google.golang.org/grpc/balancer"
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
	conn, err := c.ClientConn.NewSubConn(addresses, opts)
	if err != nil || !c.marks.Load() {
		return conn, err
	}
	return &subConn{SubConn: conn}, nil
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
	endpoint share.Endpoint // guarded by the intake of the child
}

// AddUser implements shell.Counted. The picker never changes.
func (s *subConn) AddUser(shell.CountedUser) {}

// Picker implements shell.Counted.
func (s *subConn) Picker() balancer.Picker { return &shell.Fixed{SubConn: s} }

// unwrap replaces our subchannel by the parent's, and returns its endpoint, or nil.
func unwrap(result *balancer.PickResult) *share.Endpoint {
	s, ok := result.SubConn.(*subConn)
	if !ok {
		return nil
	}
	result.SubConn = s.SubConn
	return &s.endpoint
}
