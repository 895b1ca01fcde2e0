package join

import (
	"errors"
	"sync/atomic"

	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/serviceconfig"
)

var errClosed = errors.New("the channel is closed")

// conn is a channel's resolver.ClientConn. It may outlive the channel, because sources that are
// stored for the next channel may refer to it. After close, it has no reference to the channel.
type conn struct {
	resolver.ClientConn // always nil; embedded so that conn compiles if gRPC adds methods to the interface
	cc                  atomic.Pointer[resolver.ClientConn]
}

func newConn(cc resolver.ClientConn) *conn {
	c := &conn{}
	c.cc.Store(&cc)
	return c
}

func (c *conn) close() { c.cc.Store(new(resolver.ClientConn(closedConn{}))) }

// Channel returns the channel's ClientConn. If conn is closed, it returns one that does nothing.
func (c *conn) Channel() resolver.ClientConn { return *c.cc.Load() }

func (c *conn) UpdateState(state resolver.State) error { return c.Channel().UpdateState(state) }

func (c *conn) ReportError(err error) { c.Channel().ReportError(err) }

func (c *conn) NewAddress(addresses []resolver.Address) {
	c.Channel().NewAddress(addresses)
}

func (c *conn) ParseServiceConfig(json string) *serviceconfig.ParseResult {
	return c.Channel().ParseServiceConfig(json)
}

// closedConn is the ClientConn of a closed channel.
type closedConn struct{ resolver.ClientConn }

func (closedConn) UpdateState(resolver.State) error { return errClosed }

func (closedConn) ReportError(error) {}

func (closedConn) NewAddress([]resolver.Address) {}

// ParseServiceConfig returns an empty result. A stored source may run a gRPC resolver that parses
// its service config, which is not used.
func (closedConn) ParseServiceConfig(string) *serviceconfig.ParseResult {
	return &serviceconfig.ParseResult{}
}
