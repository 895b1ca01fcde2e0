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

// clients tracks the open streams and their requests, ACKs and NACKs. It counts all of these
// events, logs the rare ones, and ends streams that exceed a limit.
type clients struct {
	log           *slog.Logger
	limits        Limits
	largeRequests lane // admits one large request at a time

	mu            sync.Mutex
	streams       map[*clientStream]bool
	clusters      map[string]*clusterStats
	repeatedNACKs int
	refusals      map[string]*refusal
	memory
}

type clientStream struct {
	incremental   bool
	cancel        context.CancelCauseFunc
	address       string
	node          string
	types         map[string]bool
	nonces        map[string]string
	sent          map[string]response
	loggedReasons map[string]string // last logged reason of a NACK, by type
	nackLimiter   eventLimiter
	subscriptions subscriptions
	memoryByType  map[string]int // estimated memory for the requests of a type, in bytes
}

func newClients(log *slog.Logger, limits Limits) *clients {
	return &clients{
		log:      log,
		limits:   limits,
		streams:  make(map[*clientStream]bool),
		clusters: make(map[string]*clusterStats),
		refusals: make(map[string]*refusal),
		memory:   memory{connections: make(map[string]*connection)},
	}
}

// request is a discovery request of the state-of-the-world or the incremental variant.
type request struct {
	node    *corev3.Node
	typeURL string
	names   []string
	// unsubscribed lists the names to unsubscribe from. Only incremental requests have such a list.
	unsubscribed []string
	version      string
	nonce        string
	errorDetail  *status.Status
}

type requestInfo struct {
	firstOfType bool
	version     string // version of the response that the request accepts or rejects, or ""
}

func (c *clients) add(ctx context.Context, incremental bool, cancel context.CancelCauseFunc) *clientStream {
	s := &clientStream{
		incremental:   incremental,
		cancel:        cancel,
		address:       "unknown",
		types:         make(map[string]bool),
		nonces:        make(map[string]string),
		sent:          make(map[string]response),
		loggedReasons: make(map[string]string),
		subscriptions: make(subscriptions),
		memoryByType:  make(map[string]int),
	}
	if p, ok := peer.FromContext(ctx); ok {
		s.address = p.Addr.String()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.streams[s] = true
	c.addToConnection(s)
	return s
}

// remove removes a stream. If recordRequest is called for the stream afterwards, it returns io.EOF.
func (c *clients) remove(s *clientStream) {
	defer c.waitTurn(c.subscriptionCount(s))()
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.streams, s)
	c.removeFromConnection(s)
	c.log.Info("client disconnected", "client", s.address, "node", s.node)
}

func (c *clients) subscriptionCount(s *clientStream) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(s.subscriptions)
}

// recordRequest records a request. It returns an error if the request exceeds a limit, or if the
// stream has ended.
func (c *clients) recordRequest(s *clientStream, r request) (requestInfo, error) {
	defer c.waitTurn(len(r.names) + len(r.unsubscribed))()
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.streams[s] {
		return requestInfo{}, io.EOF
	}
	firstOfType := !s.types[r.typeURL]
	if firstOfType && len(s.types) == c.limits.Types {
		return requestInfo{}, c.endStream(s, newLimitError("max-types", len(s.types)+1, "types on a stream", c.limits.Types))
	}
	s.types[r.typeURL] = true
	log := c.log.With("client", s.address)
	if s.node == "" && r.node != nil {
		s.node = c.logText(r.node.GetId())
		log.Info("client connected", "node", s.node, "agent", c.logText(r.node.GetUserAgentName()))
	}
	log = log.With("type", c.logText(shortType(r.typeURL)))
	sent, hasResponse := s.sent[r.typeURL]
	switch {
	case hasResponse && r.nonce != "" && r.nonce != sent.nonce && !s.incremental:
		// The client sent this request before it received the last response. It will accept or
		// reject that response later.
		log.Debug("client answers an earlier response")
		return requestInfo{}, nil
	case r.nonce == "" || s.nonces[r.typeURL] == r.nonce || r.nonce != sent.nonce:
		// The request neither accepts nor rejects a response. It is the first request, or changes
		// the names.
		log.Debug("client request", "names", c.logNames(r.names))
	case r.errorDetail != nil:
		c.recordNACK(s, r, log)
		c.recordAnswer(s, r.typeURL, r.nonce, false)
	default:
		log.Debug("client ACK", "names", c.logNames(r.names), "nonce", r.nonce, "version", c.logText(r.version))
		delete(s.loggedReasons, r.typeURL)
		c.recordAnswer(s, r.typeURL, r.nonce, true)
	}
	if r.typeURL == resourcev3.EndpointType {
		c.subscribe(s, r)
	}
	s.nonces[r.typeURL] = r.nonce
	if r.nonce == "" || r.nonce != sent.nonce {
		return requestInfo{firstOfType: firstOfType}, nil
	}
	return requestInfo{firstOfType, sent.version}, nil
}

func shortType(typeURL string) string {
	return typeURL[strings.LastIndexAny(typeURL, "./")+1:]
}
