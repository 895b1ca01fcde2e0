package resolving

import (
	"errors"
	"sync/atomic"

	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/serviceconfig"

	"github.com/understudy-lb/understudy/internal/join"
)

var errClosed = errors.New("the channel is closed")

// conn stands for a channel before its sources, and lets go of it when it is closed. The
// sources of parts may then still be kept, for the channel after it.
type conn struct {
	resolver.ClientConn // nil: what gRPC may add is the channel's own
	open                atomic.Pointer[resolver.ClientConn]
}

// newConn returns what stands for cc.
func newConn(cc resolver.ClientConn) *conn {
	c := &conn{}
	c.open.Store(&cc)
	return c
}

// close lets go of the channel.
func (c *conn) close() { c.open.Store(nil) }

// Channel returns the channel, or what does nothing once that is closed.
func (c *conn) Channel() resolver.ClientConn {
	if cc := c.open.Load(); cc != nil {
		return *cc
	}
	return closedConn{}
}

// UpdateState implements resolver.ClientConn.
func (c *conn) UpdateState(state resolver.State) error { return c.Channel().UpdateState(state) }

// ReportError implements resolver.ClientConn.
func (c *conn) ReportError(err error) { c.Channel().ReportError(err) }

// NewAddress implements resolver.ClientConn.
func (c *conn) NewAddress(addresses []resolver.Address) {
	c.Channel().NewAddress(addresses)
}

// ParseServiceConfig implements resolver.ClientConn.
func (c *conn) ParseServiceConfig(json string) *serviceconfig.ParseResult {
	return c.Channel().ParseServiceConfig(json)
}

// closedConn stands for a channel that is closed, or that never was.
type closedConn struct{ resolver.ClientConn }

// UpdateState implements resolver.ClientConn.
func (closedConn) UpdateState(resolver.State) error { return errClosed }

// ReportError implements resolver.ClientConn.
func (closedConn) ReportError(error) {}

// NewAddress implements resolver.ClientConn.
func (closedConn) NewAddress([]resolver.Address) {}

// ParseServiceConfig implements resolver.ClientConn. It knows nothing and is no error: the
// resolver of a part works on for the next channel, and no service config of it is used.
func (closedConn) ParseServiceConfig(string) *serviceconfig.ParseResult {
	return &serviceconfig.ParseResult{}
}

// resolving is the resolver of a channel.
type resolving struct {
	*join.Channel
	conn *conn
}

// Close implements resolver.Resolver.
func (r resolving) Close() {
	r.Channel.Close()
	r.conn.close()
}
