package serve

import (
	"context"
	"io"
	"log/slog"
	"strings"
	"sync"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/peer"
)

// clients follows what each client does: that it connects, what it asks for, whether
// it accepts (ACK) or rejects (NACK) what it is sent, and that it leaves. What is
// rare is logged, and all is counted. It ends the streams of those that are beyond a limit.
type clients struct {
	log    *slog.Logger
	limits Limits
	large  lane // for requests of many names, and long ones

	mu       sync.Mutex
	streams  map[*client]bool
	clusters map[string]*tally // those that are served
	repeated int               // NACKs that were not logged
	refusals map[string]*refusal
	memory
}

// client is one stream.
type client struct {
	incremental bool
	end         context.CancelCauseFunc // ends the stream
	address     string
	node        string
	types       map[string]bool     // asked for
	nonces      map[string]string   // answered last, by type
	sent        map[string]response // sent last, by type
	rejected    map[string]string   // why, as logged last, by type
	nacks       window              // those that were logged
	lacks       lacks
	held        map[string]int // bytes, by type
}

func newClients(log *slog.Logger, limits Limits) *clients {
	return &clients{
		log:      log,
		limits:   limits,
		streams:  make(map[*client]bool),
		clusters: make(map[string]*tally),
		refusals: make(map[string]*refusal),
		memory:   memory{connections: make(map[string]*connection)},
	}
}

// request is what the two variants have in common.
type request struct {
	node    *corev3.Node
	typeURL string
	names   []string
	dropped []string // asked for no longer; only in the incremental variant, where names are added
	version string
	nonce   string
	problem *status.Status
}

// remark is what was known about a request.
type remark struct {
	first   bool   // it is the first one of its type
	version string // of the response that it answers, if it does
}

// open notes a stream that has opened. end ends it.
func (c *clients) open(ctx context.Context, incremental bool, end context.CancelCauseFunc) *client {
	s := &client{
		incremental: incremental,
		end:         end,
		address:     "unknown",
		types:       make(map[string]bool),
		nonces:      make(map[string]string),
		sent:        make(map[string]response),
		rejected:    make(map[string]string),
		lacks:       make(lacks),
		held:        make(map[string]int),
	}
	if p, ok := peer.FromContext(ctx); ok {
		s.address = p.Addr.String()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.streams[s] = true
	c.join(s)
	return s
}

// closed notes that a stream has ended. A request of it may still be on its way to request.
func (c *clients) closed(s *client) {
	defer c.turn(c.wanted(s))()
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.streams, s)
	c.leave(s)
	c.log.Info("client disconnected", "client", s.address, "node", s.node)
}

// wanted returns of how many clusters the stream asks for the endpoints.
func (c *clients) wanted(s *client) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(s.lacks)
}

// request notes a request. An error says that it is one too many, or too late.
func (c *clients) request(s *client, r request) (remark, error) {
	defer c.turn(len(r.names) + len(r.dropped))()
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.streams[s] {
		return remark{}, io.EOF
	}
	first := !s.types[r.typeURL]
	if first && len(s.types) == c.limits.Types {
		return remark{}, c.end(s, tooMuch("max-types", len(s.types)+1, "types on a stream", c.limits.Types))
	}
	s.types[r.typeURL] = true
	log := c.log.With("client", s.address)
	if s.node == "" && r.node != nil {
		s.node = c.text(r.node.GetId())
		log.Info("client connected", "node", s.node, "agent", c.text(r.node.GetUserAgentName()))
	}
	log = log.With("type", c.text(short(r.typeURL)))
	sent, answered := s.sent[r.typeURL]
	switch {
	case answered && r.nonce != "" && r.nonce != sent.nonce && !s.incremental:
		// It came before the client had the last response, which it is going to answer.
		log.Debug("client answers an earlier response")
		return remark{}, nil
	case r.nonce == "" || s.nonces[r.typeURL] == r.nonce || r.nonce != sent.nonce:
		// Not an answer, but the first request or a change of what is wanted.
		log.Debug("client asks", "names", c.some(r.names))
	case r.problem != nil:
		c.rejects(s, r, log)
		c.answer(s, r.typeURL, r.nonce, false)
	default:
		log.Debug("client ACK", "names", c.some(r.names), "nonce", r.nonce, "version", c.text(r.version))
		delete(s.rejected, r.typeURL)
		c.answer(s, r.typeURL, r.nonce, true)
	}
	if r.typeURL == resourcev3.EndpointType {
		c.subscribe(s, r)
	}
	s.nonces[r.typeURL] = r.nonce
	if r.nonce == "" || r.nonce != sent.nonce {
		return remark{first: first}, nil
	}
	return remark{first, sent.version}, nil
}

// short returns the last part of the name of a type.
func short(typeURL string) string {
	return typeURL[strings.LastIndexAny(typeURL, "./")+1:]
}
