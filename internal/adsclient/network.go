package adsclient

import (
	"context"
	"net"

	"google.golang.org/grpc"
)

// Network is a way to servers other than the system's, such as a simulated one.
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

// Within returns server as it is reached within a network. Streams are shared within
// one only.
func (s Server) Within(n *Network) Server {
	if n == nil {
		return s
	}
	s.Identity = in{n, s.Identity}
	s.DialOptions = append([]grpc.DialOption{grpc.WithContextDialer(n.Dial)}, s.DialOptions...)
	return s
}
