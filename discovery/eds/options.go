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

// maxResponse is the size in bytes of the largest response that is accepted. It is several times the
// size of 100,000 endpoints. A larger response ends the stream.
const maxResponse = 64 << 20

type options struct {
	credentials credentials.TransportCredentials // if nil, those of the bootstrap or the default
	node        *corev3.Node
}

// WithTransportCredentials sets the credentials of the connection to the management server. Use
// credentials.NewTLS with the roots to verify the server against and, for mTLS, the client's
// certificate. They take precedence over those of the bootstrap. Nil selects the default. Channels
// share a stream only if their credentials are the same value.
//
// The credentials of calls are those of the channel.
func WithTransportCredentials(c credentials.TransportCredentials) discovery.SourceOption {
	if c != nil && !reflect.ValueOf(c).Comparable() {
		c = &struct {
			credentials.TransportCredentials
		}{c} // only equal to itself
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
