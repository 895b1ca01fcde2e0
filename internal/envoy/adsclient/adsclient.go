// Package adsclient keeps one ADS stream to each xDS management server, shared by all channels of
// the process. Package core/ads decides what to request and which of several servers to use, so
// what's left here is connections, backoff, timers and decoding. From a channel down to the wire:
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

type Server struct {
	// URI is the server's gRPC target.
	URI string
	// Credentials must be comparable with ==. Servers with equal URI, Credentials, Node, MaxResponse
	// and Network share a stream.
	Credentials credentials.TransportCredentials
	Node        *corev3.Node
	// MaxResponse limits the size of a response, in bytes. A larger one ends the stream.
	MaxResponse int
	// Read parses a resource, or says why it's invalid. The client only keeps what Read returns,
	// not the message.
	Read        func(proto.Message) (any, error)
	Network     *Network // nil for the system's network
	DialOptions []grpc.DialOption
}

// Network replaces the system's network, e.g. with a simulated one.
type Network struct {
	Dial func(ctx context.Context, address string) (net.Conn, error)
}

// Options can be set with discovery.OwnOption.
type Options struct {
	Network *Network // nil for the system's network
}

// Resource is a parsed resource. It must not be modified.
type Resource struct {
	Read any // what Server.Read returned
}

// Watcher gets the updates of one resource. It must be comparable. We call its methods one at a
// time, and they must neither block nor call back into this package. Even after the watch has been
// canceled, a call that was already queued may still arrive.
type Watcher interface {
	// Resource is called with each valid resource that differs from the one before. version is the
	// response's version, or "" if we don't know it.
	Resource(r *Resource, version string)
	// Unknown is called while there's no valid resource, possibly several times with different
	// errors. An error is a single line that names the server and the resource. It doesn't wrap
	// anything. absent means that the server doesn't have the resource.
	Unknown(err error, absent bool)
	// Rejected is called if we had to reject an update and the last valid resource stays in use.
	// The error looks like those for Unknown.
	Rejected(err error)
	// Lost is called when the server becomes unreachable, either because a stream ended without a
	// response or because no response arrived in time. It's called again if the reason changes, and
	// always before Unknown reports any errors caused by the outage. Once the server responds
	// again, the watcher gets the resources in the response first, and then Lost(nil).
	Lost(*Outage)
}

// Outage says why a server can't be reached. It must not be modified.
type Outage struct {
	Err         error // a single line that names the server; doesn't wrap anything
	Since       time.Time
	LastMessage time.Time // when we last heard from the server, or zero

	partial   bool        // the server is fine, but hasn't sent one of the resources we requested
	recovered atomic.Bool // the server has responded, Lost(nil) is next
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

// Clients are shared. Whoever comes first opens the stream and provides the metrics recorder, and
// whoever leaves last closes it.
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
