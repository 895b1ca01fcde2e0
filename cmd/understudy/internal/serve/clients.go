package serve

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	serverv3 "github.com/envoyproxy/go-control-plane/pkg/server/v3"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/peer"
)

// clients follows what each client does: that it connects, what it asks for, whether
// it accepts (ACK) or rejects (NACK) what it is sent, and that it leaves. What is
// rare is logged, and all is counted.
type clients struct {
	log *slog.Logger

	mu       sync.Mutex
	streams  map[int64]*client
	clusters map[string]*tally // those that are served
}

// client is one stream.
type client struct {
	address string
	node    string
	nonces  map[string]string   // answered last, by type
	sent    map[string]response // sent last, by type
	lacks   lacks
}

func newClients(log *slog.Logger) *clients {
	return &clients{log: log, streams: make(map[int64]*client), clusters: make(map[string]*tally)}
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
			c.request(id, request{r.GetNode(), r.GetTypeUrl(), r.GetResourceNames(), nil, r.GetVersionInfo(), r.GetResponseNonce(), r.GetErrorDetail()})
			return nil
		},
		StreamResponseFunc: func(_ context.Context, id int64, _ *discoveryv3.DiscoveryRequest, r *discoveryv3.DiscoveryResponse) {
			names := make([]string, len(r.GetResources()))
			for i, resource := range r.GetResources() {
				names[i] = nameOf(resource.GetValue())
			}
			c.response(id, r.GetTypeUrl(), response{r.GetNonce(), names, time.Now()})
		},
		StreamDeltaResponseFunc: func(id int64, _ *discoveryv3.DeltaDiscoveryRequest, r *discoveryv3.DeltaDiscoveryResponse) {
			names := make([]string, len(r.GetResources()))
			for i, resource := range r.GetResources() {
				names[i] = resource.GetName()
			}
			c.response(-id, r.GetTypeUrl(), response{r.GetNonce(), names, time.Now()})
		},
		StreamDeltaRequestFunc: func(id int64, r *discoveryv3.DeltaDiscoveryRequest) error {
			c.request(-id, request{r.GetNode(), r.GetTypeUrl(), r.GetResourceNamesSubscribe(), r.GetResourceNamesUnsubscribe(), "", r.GetResponseNonce(), r.GetErrorDetail()})
			return nil
		},
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

func (c *clients) open(ctx context.Context, id int64, _ string) error {
	address := "unknown"
	if p, ok := peer.FromContext(ctx); ok {
		address = p.Addr.String()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.streams[id] = &client{address: address, nonces: make(map[string]string), sent: make(map[string]response), lacks: make(lacks)}
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
	if r.typeURL == resourcev3.EndpointType {
		c.subscribe(s, id < 0, r)
	}
	kind := short(r.typeURL)
	switch {
	case r.nonce == "" || s.nonces[r.typeURL] == r.nonce:
		// Not an answer, but the first request or a change of what is wanted.
		log.Debug("client asks", "type", kind, "names", r.names)
	case r.problem != nil:
		log.Warn("client NACK", "type", kind, "names", r.names, "nonce", r.nonce, "version", r.version, "reason", r.problem.GetMessage())
		c.answer(s, r.typeURL, r.nonce, false)
	default:
		log.Debug("client ACK", "type", kind, "names", r.names, "nonce", r.nonce, "version", r.version)
		c.answer(s, r.typeURL, r.nonce, true)
	}
	s.nonces[r.typeURL] = r.nonce
}

// short returns the last part of the name of a type.
func short(typeURL string) string {
	return typeURL[strings.LastIndexAny(typeURL, "./")+1:]
}
