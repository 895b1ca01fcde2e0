package adsclient

import (
	"context"
	"net"

	"google.golang.org/grpc"
)

// Network replaces the system's network, for example with a simulated one.
type Network struct {
	Dial func(ctx context.Context, address string) (net.Conn, error)
}

// Options can be set with discovery.OwnOption.
type Options struct {
	Network *Network // nil means the system's network
}

// networkIdentity is the Identity of a server that is reached over a Network. credentials is the
// original Identity of the server.
type networkIdentity struct {
	network     *Network
	credentials any
}

// Within returns a copy of the server that is reached over network n. Servers in different networks
// do not share streams.
func (s Server) Within(n *Network) Server {
	if n == nil {
		return s
	}
	s.Identity = networkIdentity{n, s.Identity}
	s.DialOptions = append([]grpc.DialOption{grpc.WithContextDialer(n.Dial)}, s.DialOptions...)
	return s
}
