package join

import (
	"sync/atomic"

	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/serviceconfig"
)

// conn stands in for a channel's resolver.ClientConn, which sources may need for
// discovery.FromResolver. A source that's kept for the next channel may hold on to it long after
// the channel is closed, so close drops the reference to the channel.
type conn struct {
	resolver.ClientConn // always nil; FromResolver only calls the methods below
	cc                  atomic.Pointer[resolver.ClientConn]
}

func (c *conn) open(cc resolver.ClientConn) { c.cc.Store(&cc) }

func (c *conn) close() { c.open(closedConn{}) }

// Channel returns the channel's ClientConn, or a stub once conn is closed.
func (c *conn) Channel() resolver.ClientConn { return *c.cc.Load() }

func (c *conn) ParseServiceConfig(json string) *serviceconfig.ParseResult {
	return c.Channel().ParseServiceConfig(json)
}

type closedConn struct{ resolver.ClientConn }

// ParseServiceConfig returns an empty result. A stored source may be running a gRPC resolver that
// parses its service config, but we don't use the result.
func (closedConn) ParseServiceConfig(string) *serviceconfig.ParseResult {
	return &serviceconfig.ParseResult{}
}
