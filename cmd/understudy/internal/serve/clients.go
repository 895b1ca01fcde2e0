package serve

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"golang.org/x/time/rate"
	rpcstatus "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/understudy-lb/understudy/internal/text/printable"
)

// clients counts requests, ACKs and NACKs, and logs the rarer ones. If a stream exceeds a limit, we
// end it.
type clients struct {
	log           *slog.Logger
	metrics       *metrics
	maxNames      int
	largeRequests limiter

	mu         sync.Mutex
	streams    map[*clientStream]bool
	held       int            // estimated memory for all requested names, in bytes
	refusalLog rate.Sometimes // logs at most one line a second
}

// Unless noted otherwise, only the stream's goroutine may use a clientStream.
type clientStream struct {
	clients       *clients
	address, node string
	end           context.CancelCauseFunc
	topics        map[string]*topic // keyed by type URL
	responses     int
	nackLog       *rate.Limiter
	behindSince   atomic.Int64 // when the client fell behind, in Unix nanoseconds, or 0 if it's up to date

	held int // estimated memory for the requested names, in bytes; guarded by clients.mu
}

func newClients(log *slog.Logger, m *metrics, maxNames int) *clients {
	c := &clients{log: log, metrics: m, maxNames: maxNames, streams: make(map[*clientStream]bool), refusalLog: rate.Sometimes{First: 1, Interval: time.Second}}
	promauto.With(m.registry).NewGaugeFunc(prometheus.GaugeOpts{Name: "understudy_serve_lag_seconds", Help: "How long the slowest client has not accepted what it was sent; 0 if all clients have."}, c.lag)
	return c
}

func (c *clients) add(ctx context.Context, end context.CancelCauseFunc) *clientStream {
	s := &clientStream{clients: c, address: "unknown", end: end, topics: make(map[string]*topic), nackLog: rate.NewLimiter(rate.Every(6*time.Second), 10)}
	if p, ok := peer.FromContext(ctx); ok {
		s.address = p.Addr.String()
	}
	c.metrics.clients.Inc()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.streams[s] = true
	return s
}

func (c *clients) remove(s *clientStream) {
	c.mu.Lock()
	c.release(s)
	c.mu.Unlock()
	c.metrics.clients.Dec()
	c.log.Info("client disconnected", "client", s.address, "node", s.node)
}

func (c *clients) release(s *clientStream) {
	c.held -= s.held
	s.held = 0
	delete(c.streams, s)
}

func (c *clients) lag() (seconds float64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for s := range c.streams {
		if since := s.behindSince.Load(); since != 0 {
			seconds = max(seconds, time.Since(time.Unix(0, since)).Seconds())
		}
	}
	return seconds
}

func (c *clients) hold(s *clientStream, more int) {
	// If all streams together use too much memory, we end the ones that use the most.
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.streams[s] {
		return
	}
	s.held += more
	for c.held += more; c.held > maxClientMemory; {
		most := s
		for other := range c.streams {
			if other.held > most.held {
				most = other
			}
		}
		most.end(most.refuse("client-memory", c.held, "bytes for the requests of all streams, most of them for this one", maxClientMemory))
		c.release(most)
	}
}

func (s *clientStream) check(r *discoveryv3.DiscoveryRequest) error {
	if n := len(r.GetResourceNames()); n > s.clients.maxNames {
		return s.refuse("max-names", n, "names of a type", s.clients.maxNames)
	}
	if n := len(s.topics); n == maxTypes && s.topics[r.GetTypeUrl()] == nil {
		return s.refuse("max-types", n+1, "types on a stream", maxTypes)
	}
	for _, text := range append(r.GetResourceNames(), r.GetTypeUrl(), r.GetVersionInfo(), r.GetResponseNonce(), r.GetNode().GetId(), r.GetNode().GetUserAgentName()) {
		if len(text) > maxName {
			return s.refuse("max-name", len(text), "bytes in a name, type, version, nonce, node id or agent", maxName)
		}
	}
	return nil
}

// limitedListener closes connections beyond a limit. Their clients will use another server, or keep
// the endpoints they have.
type limitedListener struct {
	net.Listener
	clients *clients
	open    chan struct{} // one element per open connection
}

func (l limitedListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		select {
		case l.open <- struct{}{}:
			return countedConn{conn, sync.OnceFunc(func() { <-l.open })}, nil
		default:
			_ = conn.Close()
			refused := &clientStream{clients: l.clients, address: conn.RemoteAddr().String()}
			_ = refused.refuse("max-connections", cap(l.open)+1, "connections", cap(l.open))
		}
	}
}

type countedConn struct {
	net.Conn
	release func()
}

func (c countedConn) Close() error {
	defer c.release()
	return c.Conn.Close()
}

func (s *clientStream) refuse(limit string, n int, what string, most int) error {
	text := fmt.Sprintf("%d %s, want at most %d", n, what, most)
	s.clients.metrics.refused.WithLabelValues(limit).Inc()
	s.clients.refusalLog.Do(func() {
		s.clients.log.Warn("client refused", "client", s.address, "error", text, "limit", limit)
	})
	return status.Errorf(codes.ResourceExhausted, "%s (%s)", text, limit)
}

func (s *clientStream) recordAnswer(r *discoveryv3.DiscoveryRequest, t *topic, log *slog.Logger) {
	// To keep the log short, we don't repeat the last reason, and log at most ten rejections a
	// minute for each stream.
	t.waiting = false
	log = log.With("names", logNames(r.GetResourceNames()), "nonce", t.nonce, "version", t.version)
	if r.GetErrorDetail() == nil {
		t.rejected, t.behind = "", false
		s.clients.metrics.acks.Inc()
		log.Debug("client ACK")
	} else {
		s.clients.metrics.nacks.Inc()
		if reason := logText(r.GetErrorDetail().GetMessage()); reason != t.rejected && s.nackLog.Allow() {
			t.rejected = reason
			log.Warn("client NACK", "reason", reason)
		}
	}
}

func logText(s string) string { return printable.Line(s, maxLogged) }

func logNames(names []string) (list []string) {
	for _, name := range names[:min(len(names), maxListed)] {
		list = append(list, logText(name))
	}
	if more := len(names) - len(list); more > 0 {
		list = append(list, fmt.Sprintf("and %d more", more))
	}
	return list
}

// A gRPC client never gets anywhere near these limits (docs/limits.md). It needs one stream with
// three types, and one name per cluster for each type.
const (
	maxMessage = 256 << 10 // bytes in a request
	maxStreams = 8         // concurrent streams per connection
	maxTypes   = 16        // resource types per stream
	maxName    = 2048      // bytes in a name, type, version or node id
	maxLogged  = 500       // bytes of a client's text in the log
	maxListed  = 20        // names per request in the log

	maxClientMemory = 32 << 20 // estimated bytes for the requests of all clients
	bytesPerName    = 200      // estimated bytes per requested name, not counting the name itself

	largeRequestNames = 100     // a request is large if it has this many names,
	largeRequestBytes = 4 << 10 // or this many bytes
)

func serverOptions(largeRequests *limiter) []grpc.ServerOption {
	const window = 64 << 10 // bytes that a client can send ahead of what we've read
	return []grpc.ServerOption{
		grpc.ForceServerCodecV2(codec{encoding.GetCodecV2(proto.Name), largeRequests}),
		grpc.MaxRecvMsgSize(maxMessage),
		grpc.MaxConcurrentStreams(maxStreams),
		grpc.MaxHeaderListSize(16 << 10),
		grpc.ConnectionTimeout(20 * time.Second),
		grpc.StaticStreamWindowSize(window),
		grpc.StaticConnWindowSize(window),
		grpc.ReadBufferSize(8 << 10),
		grpc.WriteBufferSize(8 << 10),
	}
}

// codec decodes large requests one at a time, since decoding takes many times their size in memory.
// A decoded request may still have to wait, so we drop everything we don't need.
type codec struct {
	encoding.CodecV2
	largeRequests *limiter
}

func (c codec) Unmarshal(data mem.BufferSlice, v any) error {
	if data.Len() > largeRequestBytes {
		defer c.largeRequests.enter()()
	}
	err := c.CodecV2.Unmarshal(data, v)
	if r, ok := v.(*discoveryv3.DiscoveryRequest); ok {
		r.ResourceLocators = nil
		if n := r.GetNode(); n != nil {
			r.Node = &corev3.Node{Id: n.GetId(), UserAgentName: n.GetUserAgentName()}
		}
		if e := r.GetErrorDetail(); e != nil {
			r.ErrorDetail = &rpcstatus.Status{Message: e.GetMessage()}
		}
	}
	return err
}

// limiter lets one large request through at a time. Then it pauses for as long as that request
// took, so that all of them together use at most half of a processor.
type limiter struct{ mu sync.Mutex }

// enter waits for its turn. The caller must call leave when done.
func (l *limiter) enter() (leave func()) {
	l.mu.Lock()
	startTime := time.Now()
	return func() { time.AfterFunc(time.Since(startTime), l.mu.Unlock) }
}

type metrics struct {
	registry                    *prometheus.Registry
	refused                     *prometheus.CounterVec
	acks, nacks                 prometheus.Counter
	clients, clusters, rejected prometheus.Gauge
}

func newMetrics(droppedLines func() float64) *metrics {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewBuildInfoCollector(), collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	with := promauto.With(registry)
	with.NewCounterFunc(prometheus.CounterOpts{Name: "understudy_serve_log_lines_dropped_total", Help: "Log lines that were dropped because the log was not read or could not be written."}, droppedLines)
	return &metrics{
		registry: registry,
		refused:  with.NewCounterVec(prometheus.CounterOpts{Name: "understudy_serve_refused_total", Help: "Streams and connections that were ended because they exceeded the limit."}, []string{"limit"}),
		acks:     with.NewCounter(prometheus.CounterOpts{Name: "understudy_serve_acks_total", Help: "Responses that a client has accepted."}),
		nacks:    with.NewCounter(prometheus.CounterOpts{Name: "understudy_serve_nacks_total", Help: "Responses that a client has rejected."}),
		clients:  with.NewGauge(prometheus.GaugeOpts{Name: "understudy_serve_clients", Help: "Streams of clients that are open."}),
		clusters: with.NewGauge(prometheus.GaugeOpts{Name: "understudy_serve_clusters", Help: "Clusters that are served."}),
		rejected: with.NewGauge(prometheus.GaugeOpts{Name: "understudy_serve_rejected_files", Help: "Files and directories that are currently rejected, and targets that currently fail."}),
	}
}
