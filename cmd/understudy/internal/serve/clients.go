package serve

import (
	"context"
	"log/slog"
	"strings"
	"sync"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	serverv3 "github.com/envoyproxy/go-control-plane/pkg/server/v3"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/peer"
)

// clients logs what each client does: that it connects, what it asks for, whether it
// accepts (ACK) or rejects (NACK) what it is sent, and that it leaves.
type clients struct {
	log *slog.Logger

	mu      sync.Mutex
	streams map[int64]*client
}

// client is one stream.
type client struct {
	address string
	node    string
	nonces  map[string]string // answered last, by type
}

func newClients(log *slog.Logger) *clients {
	return &clients{log: log, streams: make(map[int64]*client)}
}

// callbacks is what go-control-plane calls. Its streams are numbered from 1, those
// of the state-of-the-world variant and those of the incremental one apart, which is
// why the latter are kept under negative numbers.
func (c *clients) callbacks() serverv3.Callbacks {
	return serverv3.CallbackFuncs{
		StreamOpenFunc:        c.open,
		DeltaStreamOpenFunc:   func(ctx context.Context, id int64, typeURL string) error { return c.open(ctx, -id, typeURL) },
		StreamClosedFunc:      c.closed,
		DeltaStreamClosedFunc: func(id int64, node *corev3.Node) { c.closed(-id, node) },
		StreamRequestFunc: func(id int64, r *discoveryv3.DiscoveryRequest) error {
			c.request(id, request{r.GetNode(), r.GetTypeUrl(), r.GetResourceNames(), r.GetVersionInfo(), r.GetResponseNonce(), r.GetErrorDetail()})
			return nil
		},
		StreamDeltaRequestFunc: func(id int64, r *discoveryv3.DeltaDiscoveryRequest) error {
			c.request(-id, request{r.GetNode(), r.GetTypeUrl(), r.GetResourceNamesSubscribe(), "", r.GetResponseNonce(), r.GetErrorDetail()})
			return nil
		},
	}
}

// request is what the two variants have in common.
type request struct {
	node    *corev3.Node
	typeURL string
	names   []string
	version string
	nonce   string
	problem *status.Status
}

func (c *clients) open(ctx context.Context, id int64, _ string) error {
	address := "unknown"
	if p, ok := peer.FromContext(ctx); ok {
		address = p.Addr.String()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.streams[id] = &client{address: address, nonces: make(map[string]string)}
	return nil
}

func (c *clients) closed(id int64, _ *corev3.Node) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.streams[id]; s != nil {
		delete(c.streams, id)
		c.log.Info("client disconnected", "client", s.address, "node", s.node)
	}
}

func (c *clients) request(id int64, r request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.streams[id]
	if s == nil {
		return
	}
	log := c.log.With("client", s.address)
	if s.node == "" && r.node != nil {
		s.node = r.node.GetId()
		log.Info("client connected", "node", s.node, "agent", r.node.GetUserAgentName())
	}
	kind := short(r.typeURL)
	switch {
	case r.nonce == "" || s.nonces[r.typeURL] == r.nonce:
		// Not an answer, but the first request or a change of what is wanted.
		log.Info("client asks", "type", kind, "names", r.names)
	case r.problem != nil:
		log.Warn("client NACK", "type", kind, "names", r.names, "nonce", r.nonce, "version", r.version, "reason", r.problem.GetMessage())
	default:
		log.Info("client ACK", "type", kind, "names", r.names, "nonce", r.nonce, "version", r.version)
	}
	s.nonces[r.typeURL] = r.nonce
}

// short returns the last part of the name of a type.
func short(typeURL string) string {
	return typeURL[strings.LastIndexAny(typeURL, "./")+1:]
}
