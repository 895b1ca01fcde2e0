// Package adsclient keeps one ADS stream to each xDS management server, shared by all channels of
// the process. Package core/ads decides what we request and which of several servers we use; here
// are connections, backoff, timers and decoding. From a channel down to the wire:
//
//	Following   what one target needs, and from which servers    one per channel
//	view        its resources on one server                      one per Following and server
//	client      the stream to a server, and its watchers         one per server and process
//	topic       the subscriptions to one type of resource        two per client
package adsclient

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	estats "google.golang.org/grpc/experimental/stats"
	"google.golang.org/grpc/grpclog"
	"google.golang.org/protobuf/proto"
)

var logger = grpclog.Component("understudy")

// Server is a management server.
type Server struct {
	// URI is the server's gRPC target.
	URI string
	// Credentials must be comparable with ==. Servers with equal URI, Credentials, Node, MaxResponse
	// and Network share a stream.
	Credentials credentials.TransportCredentials
	Node        *corev3.Node
	// MaxResponse is the size in bytes of the largest response to accept.
	MaxResponse int
	// Read parses a resource, or returns why the resource is invalid. The client keeps only the
	// result.
	Read        func(proto.Message) (any, error)
	Network     *Network // nil means the system's network
	DialOptions []grpc.DialOption
}

// Network replaces the system's network, for example with a simulated one.
type Network struct {
	Dial func(ctx context.Context, address string) (net.Conn, error)
}

// Options can be set with discovery.OwnOption.
type Options struct {
	Network *Network // nil means the system's network
}

// Resource is a parsed resource, which must not be modified.
type Resource struct {
	Read any // the result of Server.Read
}

// Watcher receives the updates of one resource. It must be comparable. Its methods are called one at
// a time, must not block, and must not call this package. A call that was already queued may arrive
// after the cancellation.
type Watcher interface {
	// Resource is called with each valid resource that differs from the previous one. version is the
	// version of the response that contained the resource, or "" if that version is unknown.
	Resource(r *Resource, version string)
	// Unknown is called while there is no valid resource, perhaps several times with different errors.
	// The error is a single line that names the server and the resource, and it wraps no other error.
	// absent means that the server does not have the resource.
	Unknown(err error, absent bool)
	// Rejected is called when an update was rejected and the last valid resource stays in use. The
	// error has the same form as the error of Unknown.
	Rejected(err error)
	// Lost is called when the server becomes unreachable, because a stream ended without a response
	// or no response arrived in time. It is called before Unknown reports errors that the outage
	// causes, and again when the reason changes. When the server responds again, the watcher first
	// receives the resources of the response, and then Lost(nil).
	Lost(*Outage)
}

// Outage describes why a server is unreachable. It must not be modified.
type Outage struct {
	Err         error // a single line that names the server; wraps no other error
	Since       time.Time
	LastMessage time.Time // when the server last sent a message, or zero

	partial   bool        // the server has not sent one requested resource, but is reachable
	recovered atomic.Bool // the server has responded again, and Lost(nil) will be called next
}

type key struct {
	uri         string
	credentials credentials.TransportCredentials
	node        string
	maxResponse int
	network     *Network
}

func (s Server) key() key {
	node, err := proto.MarshalOptions{Deterministic: true}.Marshal(s.Node)
	if err != nil {
		logger.Warningf("eds: node of server %s cannot be encoded: %v", s.URI, err)
	}
	return key{s.URI, s.Credentials, string(node), s.MaxResponse, s.Network}
}

// clients are shared. The first user of one opens its stream and lends it a metrics recorder; the
// last one closes it.
var clients = registry{clients: make(map[key]*client)}

type registry struct {
	mu      sync.Mutex
	clients map[key]*client
}

func (r *registry) acquire(server Server, recorder estats.MetricsRecorder) *client {
	r.mu.Lock()
	defer r.mu.Unlock()
	k := server.key()
	c, ok := r.clients[k]
	if !ok {
		c = newClient(server, k, recorder)
		r.clients[k] = c
	}
	c.users++
	return c
}

func (r *registry) release(c *client) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c.users--; c.users == 0 {
		delete(r.clients, c.key)
		c.stop()
	}
}
