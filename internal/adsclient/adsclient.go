// Package adsclient keeps one stream to each xDS management server that anybody
// watches a resource on, shared by all channels of the process, and follows a target
// over several servers. Package ads decides what is said on a stream, and which server
// is used. This package is its shell: the connections, the backoff, the timers, and the
// decoding of resources.
package adsclient

import (
	"fmt"
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

// Server is a management server, and how to talk to it.
type Server struct {
	// URI is the gRPC target of the server.
	URI string
	// Credentials of the connection. Not nil.
	Credentials credentials.TransportCredentials
	// Identity tells Credentials from others: a comparable value. Streams are
	// shared by those whose URI, Identity, Node and MaxResponse are equal.
	Identity any
	// Node says who is asking.
	Node *corev3.Node
	// MaxResponse is the size in bytes of the largest response that is read.
	MaxResponse int
	// Read returns what a resource says, which is all that is kept of it, or what is wrong
	// with it.
	Read func(proto.Message) (any, error)
	// DialOptions are added to those of the connection.
	DialOptions []grpc.DialOption
}

// Resource is a resource. It is shared and must not be modified.
type Resource struct {
	Read any // what the server's Read returned
}

// Watcher is told about one resource. Its methods are called one at a time, must
// return at once and must not call this package. One call may still come after the
// watch was cancelled.
type Watcher interface {
	// Resource is called with each good resource that differs from the one
	// before, and the version of the response that brought it, "" where that is not
	// known any more.
	Resource(r *Resource, version string)
	// Unknown is called, any number of times, while no good resource is known. The
	// error is one line that names the server and the resource, and wraps nothing.
	// Absent means that the server has said so, by not sending it in time.
	Unknown(err error, absent bool)
	// Rejected is called when a bad resource came in place of a good one, which stays. The
	// error is like that of Unknown.
	Rejected(err error)
	// Lost is called when the server cannot be reached, and again when the reason changes:
	// a stream ended without an answer, or nothing came within the time that a
	// resource has. It comes before any error that this causes. Lost(nil) is called when
	// the server then answers, after the resources that came with the answer.
	Lost(*Outage)
}

// Outage says that a server cannot be reached. It is shared and must not be modified.
type Outage struct {
	Err   error     // why, in one line that names the server; wraps nothing
	Since time.Time // when that was noticed
	Heard time.Time // when the server was heard last, zero for never

	partial bool        // of one resource, which was asked for last; what came before is confirmed
	over    atomic.Bool // the server answers again; its watchers are about to be told
}

// Watch asks server for the resource of a type and name until cancel is called. The
// first watcher of a server opens the stream, and its recorder counts what happens
// there. The last one closes the stream. recorder may be nil.
func Watch(server Server, of *Type, name string, w Watcher, recorder estats.MetricsRecorder) (cancel func()) {
	if !utf8.ValidString(name) { // one such name would end the stream for all
		w.Unknown(fmt.Errorf("eds: no %s %q from %s: its name is not UTF-8", of.noun, name, server.URI), true)
		return func() {}
	}
	c := clients.acquire(server, recorder)
	handle := &watch{w}
	c.serial.Do(func() { c.topic(of.url).watch(name, handle) })
	return sync.OnceFunc(func() {
		c.serial.Do(func() { c.topic(of.url).unwatch(name, handle) })
		clients.release(c)
	})
}

// Heard returns when a server was last heard. It must be watched, and have answered.
// While it answers on a stream, that is now.
func Heard(server Server) time.Time {
	if c := clients.find(server); c != nil {
		if ended := c.ended.Load(); ended != nil {
			return *ended
		}
	}
	return time.Now()
}

// EndpointsFailed notes that endpoints fail which came from server. If it is watched and has
// been quiet, a second stream is opened to it.
func EndpointsFailed(server Server) {
	if c := clients.find(server); c != nil {
		c.endpointsFailed()
	}
}

// key identifies a stream: watchers with the same key share one.
type key struct {
	uri      string
	identity any
	node     string
	max      int
}

func (s Server) key() key {
	node, err := proto.MarshalOptions{Deterministic: true}.Marshal(s.Node)
	if err != nil {
		logger.Warningf("eds: node of server %s cannot be encoded: %v", s.URI, err)
	}
	return key{s.URI, s.Identity, string(node), s.MaxResponse}
}

// clients holds every client in use in this process.
var clients = registry{clients: make(map[key]*client)}

type registry struct {
	mu      sync.Mutex
	clients map[key]*client
}

// find returns the client of a server, nil where nobody watches it.
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
