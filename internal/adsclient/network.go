package adsclient

import (
	"context"
	"net"

	"google.golang.org/grpc"
)

// Network reaches servers in another way than the system's network, such as a
// simulated one.
type Network struct {
	Dial func(ctx context.Context, address string) (net.Conn, error)
}

// Options are given to a source by discovery.OwnOption.
type Options struct {
	Network *Network // nil for the system's
}

// in is the identity of credentials in a network.
type in struct {
	network     *Network
	credentials any
}

// Within returns the server as it is reached within a network. Streams are shared within
// one network only.
func (s Server) Within(n *Network) Server {
	if n == nil {
		return s
	}
	s.Identity = in{n, s.Identity}
	s.DialOptions = append([]grpc.DialOption{grpc.WithContextDialer(n.Dial)}, s.DialOptions...)
	return s
}
