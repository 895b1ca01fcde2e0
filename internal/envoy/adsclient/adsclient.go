// Package adsclient keeps one ADS stream to each xDS management server, shared by all channels of
// the process. It can use several servers for a target, in order of preference. Package core/ads
// decides which requests are sent and which server is used. This package implements connections,
// backoff, timers and the decoding of resources.
package adsclient

import (
	"context"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

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
	// Credentials must not be nil.
	Credentials credentials.TransportCredentials
	// Identity identifies Credentials. It must be comparable. Servers with equal URI, Identity, Node,
	// MaxResponse and Network share a stream.
	Identity any
	Node     *corev3.Node
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

// Watcher receives the updates of one resource. Its methods are called one at a time, must not
// block, and must not call this package. A call that was already queued may arrive after the
// cancellation.
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

// Watch subscribes to a resource until cancel is called. The first watcher of a server opens the
// stream, and the recorder of this watcher receives the stream's metrics. recorder may be nil. The
// stream is closed when the last watcher has cancelled.
func Watch(server Server, typ *Type, name string, w Watcher, recorder estats.MetricsRecorder) (cancel func()) {
	if !utf8.ValidString(name) { // a request with an invalid name would end the stream of all watchers
		w.Unknown(fmt.Errorf("eds: no %s %q from %s: its name is not UTF-8", typ.noun, name, server.URI), true)
		return func() {}
	}
	c := clients.acquire(server, recorder)
	handle := &watch{w}
	c.serial.Do(func() { c.topic(typ.url).watch(name, handle) })
	return sync.OnceFunc(func() {
		c.serial.Do(func() { c.topic(typ.url).unwatch(name, handle) })
		clients.release(c)
	})
}

// LastMessage returns the time at which a server last sent a message, or the current time while its
// stream is open. The server must be watched and must have responded before.
func LastMessage(server Server) time.Time {
	if c := clients.find(server); c != nil {
		return c.lastMessage()
	}
	return time.Now()
}

// EndpointsFailed reports that connections to endpoints in the server's responses have failed. If
// the server's stream is silent, the client then opens a second stream.
func EndpointsFailed(server Server) {
	if c := clients.find(server); c != nil {
		c.endpointsFailed()
	}
}

type key struct {
	uri         string
	identity    any
	node        string
	maxResponse int
	network     *Network
}

func (s Server) key() key {
	node, err := proto.MarshalOptions{Deterministic: true}.Marshal(s.Node)
	if err != nil {
		logger.Warningf("eds: node of server %s cannot be encoded: %v", s.URI, err)
	}
	return key{s.URI, s.Identity, string(node), s.MaxResponse, s.Network}
}

var clients = registry{clients: make(map[key]*client)}

type registry struct {
	mu      sync.Mutex
	clients map[key]*client
}

func (r *registry) find(server Server) *client {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.clients[server.key()]
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
	c.users--
	last := c.users == 0
	if last {
		delete(r.clients, c.key)
	}
	r.mu.Unlock()
	if last {
		c.stop()
	}
}
