package join

import (
	"sync/atomic"

	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/serviceconfig"
)

// conn is what sources get of a channel's resolver.ClientConn, for discovery.FromResolver. It may
// outlive the channel, because sources that are stored for the next channel may refer to it. After
// close, it has no reference to the channel.
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
// its service config, which is not used.
func (closedConn) ParseServiceConfig(string) *serviceconfig.ParseResult {
	return &serviceconfig.ParseResult{}
}
