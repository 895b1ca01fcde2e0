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

// clients keeps the streams of clients with their requests, ACKs and NACKs. It counts all events,
// logs the rare ones, and ends streams that exceed a limit.
type clients struct {
	log    *slog.Logger
	limits Limits
	large  lane // admits large requests one at a time

	mu       sync.Mutex
	streams  map[*client]bool
	clusters map[string]*tally
	repeated int
	refusals map[string]*refusal
	memory
}

type client struct {
	incremental bool
	end         context.CancelCauseFunc
	address     string
	node        string
	types       map[string]bool
	nonces      map[string]string
	sent        map[string]response
	rejected    map[string]string // the last logged reason of a NACK, by type
	nacks       window
	lacks       lacks
	held        map[string]int // estimated memory for requests in bytes, by type
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

// request is a discovery request of either variant, state-of-the-world or incremental.
type request struct {
	node    *corev3.Node
	typeURL string
	names   []string
	// dropped are the names to unsubscribe from. Only the incremental variant has them.
	dropped []string
	version string
	nonce   string
	problem *status.Status
}

type remark struct {
	first   bool
	version string // version that the request accepts or rejects, or ""
}

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

// closed removes a stream. The method request may still be called for it.
func (c *clients) closed(s *client) {
	defer c.turn(c.wanted(s))()
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.streams, s)
	c.leave(s)
	c.log.Info("client disconnected", "client", s.address, "node", s.node)
}

func (c *clients) wanted(s *client) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(s.lacks)
}

// request registers a request. It returns an error if the request exceeds a limit, or if the stream
// has ended.
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
		// The client sent this request before it received the last response. It will answer that
		// response later.
		log.Debug("client answers an earlier response")
		return remark{}, nil
	case r.nonce == "" || s.nonces[r.typeURL] == r.nonce || r.nonce != sent.nonce:
		// The request does not answer a response: it is the first one, or changes the names.
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

func short(typeURL string) string {
	return typeURL[strings.LastIndexAny(typeURL, "./")+1:]
}
