package eds

import (
	"errors"
	"fmt"
	"reflect"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"

	"github.com/understudy-lb/understudy/discovery"
)

// Scheme is the scheme of the targets of this package.
const Scheme = "eds"

func init() { discovery.Register(Scheme, parts) }

// defaultMaxResponse holds 100,000 endpoints several times over.
const defaultMaxResponse = 64 << 20

type options struct {
	credentials *channelCredentials // nil: those of the bootstrap, or the default
	node        *corev3.Node        // nil: that of the bootstrap, or the default
	maxResponse int

	reachabilityOnly bool // A95
	cds              bool // begin at the Cluster

	dialOptions []grpc.DialOption
}

// check returns what is wrong with the options.
func (o *options) check() error {
	if o.maxResponse <= 0 {
		return fmt.Errorf("a response size of %d bytes, want at least 1", o.maxResponse)
	}
	if _, err := proto.Marshal(o.node); err != nil {
		return fmt.Errorf("the node cannot be sent: %w", err)
	}
	if o.credentials != nil && o.credentials.transport == nil {
		return errors.New("the transport credentials are nil")
	}
	return nil
}

// WithTransportCredentials sets the credentials of the connection to the management
// server: credentials.NewTLS with the roots to verify it against and, for mTLS, the
// client's certificate. They go before those of the bootstrap; nil is an error.
// Channels share a stream only if their credentials are the same value. The package
// comment has the default.
//
// The credentials of the calls are those of the channel.
func WithTransportCredentials(c credentials.TransportCredentials) discovery.SourceOption {
	// Credentials that == cannot compare are told apart by the option they came in.
	identity := any(new(byte))
	if c != nil && reflect.ValueOf(c).Comparable() {
		identity = c
	}
	return discovery.OwnOption(func(o *options) { o.credentials = &channelCredentials{c, identity} })
}

// WithInsecure turns off encryption on the connection to the management server, on any
// network. Whoever can change what the connection carries decides where the calls go.
// By default only servers on the loopback interface go without.
func WithInsecure() discovery.SourceOption {
	return discovery.OwnOption(func(o *options) {
		o.credentials = &channelCredentials{insecure.NewCredentials(), insecureIdentity}
	})
}

// WithNode sets what the client says about itself to the management server. It goes
// before the node of the bootstrap. The default is that node, or one with the name of
// the host as its id. The node is copied; nil asks for the default.
func WithNode(node *corev3.Node) discovery.SourceOption {
	if node != nil {
		node = withAgent(proto.CloneOf(node))
	}
	return discovery.OwnOption(func(o *options) { o.node = node })
}

// WithMaxResponseSize sets how large, in bytes, a response of the management server
// may be. A larger one is not read and ends the stream, as does one that gRPC cannot
// parse. Default: 64 MiB, which holds 100,000 endpoints several times over. A
// response takes about ten times its size in memory while it is being applied.
func WithMaxResponseSize(bytes int) discovery.SourceOption {
	return discovery.OwnOption(func(o *options) { o.maxResponse = bytes })
}

// The options in a target.
const (
	reachabilityParameter = "fallbackOnReachabilityOnly"
	cdsParameter          = "cds"
)

// WithFallbackOnReachabilityOnly asks the next of several management servers as soon as
// the one before cannot be reached, as fallback_on_reachability_only does in gRFC A95.
// By default the next one is asked only where endpoints are also missing, as in gRFC
// A71: a channel that has endpoints goes on with those.
func WithFallbackOnReachabilityOnly() discovery.SourceOption {
	return discovery.OwnOption(func(o *options) { o.reachabilityOnly = true })
}

// WithCDS begins at the Cluster of the target's name, by CDS, in place of its endpoints: it
// may be an aggregate, a name in DNS, or say which endpoints to ask for (gRFC A37).
func WithCDS() discovery.SourceOption {
	return discovery.OwnOption(func(o *options) { o.cds = true })
}
