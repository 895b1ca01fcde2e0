package eds

import (
	"reflect"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"

	"github.com/understudy-lb/understudy/discovery"
)

// Scheme is the URI scheme of this package's targets.
const Scheme = "eds"

func init() { discovery.Register(Scheme, targetMechanisms) }

// maxResponse is in bytes, and several times the size of a response with 100,000 endpoints. A
// larger response ends the stream.
const maxResponse = 64 << 20

type options struct {
	credentials credentials.TransportCredentials // nil for those of the bootstrap, or the default
	node        *corev3.Node
}

// WithTransportCredentials sets the credentials for connections to the management server, instead
// of those in the bootstrap. Use credentials.NewTLS with the roots that the server is verified
// against and, for mTLS, the client's certificate. Nil selects the default. Channels only share a
// stream if they use the same value, so don't create new credentials for each channel.
//
// Calls on the channel aren't affected. They use the channel's own credentials.
func WithTransportCredentials(c credentials.TransportCredentials) discovery.SourceOption {
	if c != nil && !reflect.ValueOf(c).Comparable() {
		c = &struct {
			credentials.TransportCredentials
		}{c} // a pointer is comparable, and only equal to itself
	}
	return discovery.OwnOption(func(o *options) { o.credentials = c })
}

// WithInsecure disables encryption on the connection to the management server, no matter which
// network it's on. Beware that an attacker who can modify the connection gets to decide where calls
// go.
func WithInsecure() discovery.SourceOption {
	return WithTransportCredentials(insecure.NewCredentials())
}

// WithNode sets the node that identifies the client to the management server. It takes precedence
// over the bootstrap's node. The default is a node whose id is the host name, which is also used
// for nil. The node is copied.
func WithNode(node *corev3.Node) discovery.SourceOption {
	if node != nil {
		node = withAgent(proto.CloneOf(node))
	}
	return discovery.OwnOption(func(o *options) { o.node = node })
}
