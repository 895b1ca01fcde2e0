package join

import (
	"sync/atomic"

	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/serviceconfig"
)

// Sources get this in place of a channel's resolver.ClientConn, for discovery.FromResolver. It may
// outlive the channel, as sources that are stored for the next channel may refer to it. Therefore
// it lets go of the channel when it is closed.
type conn struct {
	resolver.ClientConn // always nil: FromResolver calls no other method
	cc                  atomic.Pointer[resolver.ClientConn]
}

func (c *conn) open(cc resolver.ClientConn) { c.cc.Store(&cc) }

func (c *conn) close() { c.open(closedConn{}) }

// Channel returns the channel's ClientConn. If conn is closed, it returns that of a closed channel.
func (c *conn) Channel() resolver.ClientConn { return *c.cc.Load() }

func (c *conn) ParseServiceConfig(json string) *serviceconfig.ParseResult {
	return c.Channel().ParseServiceConfig(json)
}

type closedConn struct{ resolver.ClientConn }

// ParseServiceConfig returns an empty result. A stored source may run a gRPC resolver that parses
// its service config, but we do not use that.
func (closedConn) ParseServiceConfig(string) *serviceconfig.ParseResult {
	return &serviceconfig.ParseResult{}
}
