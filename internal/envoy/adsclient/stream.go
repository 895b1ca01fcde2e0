package adsclient

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/keepalive"

	"github.com/understudy-lb/understudy/internal/core/ads"
	"github.com/understudy-lb/understudy/internal/net/xnet"
	"github.com/understudy-lb/understudy/internal/text/printable"
)

// run opens one stream after another. As elsewhere in gRPC, the backoff counts from the beginning
// of an attempt. If a stream has lasted longer than its backoff, the next stream is therefore
// opened at once.
func (c *client) run() {
	attempt := 0
	var next *stream // a second stream that is about to take over
	for c.ctx.Err() == nil {
		start := time.Now()
		var answered bool
		answered, next = c.streamEnded(c.stream(next))
		if answered {
			attempt = 0
		}
		if next != nil {
			continue
		}
		xnet.Rest(c.ctx, time.Until(start.Add(xnet.Backoff(attempt, rand.Float64()))))
		attempt++
	}
	if next != nil {
		next.close()
	}
}

var errRenewed = errors.New("replaced, to unsubscribe from clusters that nobody watches")

// replacedByClient reports whether the client itself ended the stream in order to replace it.
func replacedByClient(err error) bool {
	return errors.Is(err, errRenewed) || errors.Is(err, errPingInterval) || errors.Is(err, errTakenOver)
}

// streamEnded handles the end of the current stream. answered reports whether a response had
// arrived on it. next is the second stream that takes over, or nil.
func (c *client) streamEnded(err error) (answered bool, next *stream) {
	c.serial.Do(func() {
		answered = c.answered
		if answered {
			c.count(connectedMetric, -1)
			now := time.Now()
			c.ended.Store(&now)
		}
		c.current = nil
		c.cancelSecond()
		next, c.second.next = c.second.next, nil
		if c.ctx.Err() != nil {
			return
		}
		renewed := replacedByClient(err)
		if err != nil && !renewed {
			// The errors of calls contain this text, so it must be short and printable.
			err = errors.New(printable.Text(printable.Brief(err.Error())))
		}
		if renewed {
			logger.Infof("eds: stream to %s: %v", c.server.URI, err)
			err = nil
		} else if answered {
			logger.Infof("eds: stream to %s ended: %v", c.server.URI, err)
		} else {
			logger.Warningf("eds: stream to %s failed: %v", c.server.URI, err)
			c.count(failedMetric, 1)
		}
		c.closed(err)
	})
	return answered, next
}

// stream is an ADS stream with its own connection. The next stream gets a new connection, because
// gRPC's backoff for connections would be added to the backoff for streams.
type stream struct {
	ctx           context.Context
	cancel        context.CancelCauseFunc
	conn          *grpc.ClientConn
	ads           adsStream
	mailboxes     mailboxes
	sendDone      chan struct{} // closed when client.send has returned
	frequentPings bool          // a keepalive ping is sent every 30 s

	// The following fields are set only for a second stream: requested holds the names that were
	// requested before it replaced the current stream, by topic; firstResponse is its first response.
	requested     [2][]string
	firstResponse *discoveryv3.DiscoveryResponse
}

func (c *client) open(ctx context.Context, cancel context.CancelCauseFunc, frequentPings bool) (*stream, error) {
	conn, err := grpc.NewClient(c.server.URI, c.dialOptions(frequentPings)...)
	if err != nil {
		cancel(err)
		return nil, err
	}
	ads, err := discoveryv3.NewAggregatedDiscoveryServiceClient(conn).StreamAggregatedResources(ctx)
	if err != nil {
		cancel(err)
		_ = conn.Close()
		return nil, err
	}
	s := &stream{ctx: ctx, cancel: cancel, frequentPings: frequentPings, conn: conn, ads: ads, mailboxes: newMailboxes(), sendDone: make(chan struct{})}
	go func() {
		defer close(s.sendDone)
		c.send(ctx, ads, s.mailboxes)
	}()
	return s, nil
}

func (s *stream) recv() (*discoveryv3.DiscoveryResponse, error) {
	if first := s.firstResponse; first != nil {
		s.firstResponse = nil
		return first, nil
	}
	return s.ads.Recv()
}

func (s *stream) close() {
	s.cancel(nil)
	<-s.sendDone
	_ = s.conn.Close()
}

// stream runs s until it ends. If s is nil, it opens a new stream.
func (c *client) stream(s *stream) error {
	if s == nil {
		var err error
		ctx, cancel := context.WithCancelCause(c.ctx)
		if s, err = c.open(ctx, cancel, c.pinging.frequent); err != nil {
			return err
		}
	}
	c.serial.Do(func() { c.opened(s) })
	for first := true; ; first = false {
		response, err := s.recv()
		if err != nil {
			cause := context.Cause(s.ctx)
			if errors.Is(cause, errTakenOver) {
				go s.close() // gRPC waits up to 5 s for a connection that accepts no data
				return cause
			}
			s.close()
			if replacedByClient(cause) {
				return cause
			}
			return err
		}
		c.received(response)
		if first {
			headers, _ := s.ads.Header() // Recv returns the same error
			c.pinging.applyHeader(s, headers.Get(pingHeader))
		}
	}
}

func (c *client) dialOptions(frequentPings bool) []grpc.DialOption {
	return append([]grpc.DialOption{
		grpc.WithTransportCredentials(c.server.Credentials),
		grpc.WithKeepaliveParams(keepaliveParams(frequentPings)),
		grpc.WithDisableServiceConfig(),
		grpc.WithIdleTimeout(0),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(c.server.MaxResponse)),
	}, c.server.DialOptions...)
}

type adsStream = discoveryv3.AggregatedDiscoveryService_StreamAggregatedResourcesClient

// send sends the requests from the mailboxes until ctx is done. It runs on its own goroutine,
// because Send blocks while the server does not read. It ignores errors of Send, because Recv
// returns more detailed ones.
func (c *client) send(ctx context.Context, stream adsStream, boxes mailboxes) {
	node := c.server.Node // sent only in the first request
	for {
		i, r := boxes.take(ctx)
		if r == nil {
			return
		}
		request := &discoveryv3.DiscoveryRequest{
			Node:          node,
			TypeUrl:       c.topics[i].url,
			ResourceNames: r.Names,
			VersionInfo:   r.Version,
			ResponseNonce: r.Nonce,
		}
		if r.Reject != "" {
			request.ErrorDetail = &status.Status{Code: int32(codes.InvalidArgument), Message: strings.ToValidUTF8(r.Reject, "\ufffd")}
		}
		if stream.Send(request) != nil {
			return
		}
		node = nil
	}
}

// mailbox holds the next request of a topic. A new request replaces an unsent one, because each
// request lists all subscriptions and acknowledges the last response. The mailbox therefore holds
// at most one request, even if the server does not read.
type mailbox struct{ slot chan *ads.Request }

func newMailbox() *mailbox { return &mailbox{make(chan *ads.Request, 1)} }

// put replaces the request in the mailbox. It must not be called concurrently.
func (m *mailbox) put(r *ads.Request) {
	select {
	case unsent := <-m.slot:
		r = r.Replacing(unsent)
	default:
	}
	m.slot <- r
}

type mailboxes [2]*mailbox

func newMailboxes() mailboxes { return mailboxes{newMailbox(), newMailbox()} }

// take returns the next request and the index of its topic, or nil when ctx is done.
func (m mailboxes) take(ctx context.Context) (int, *ads.Request) {
	select {
	case r := <-m[0].slot:
		return 0, r
	case r := <-m[1].slot:
		return 1, r
	case <-ctx.Done():
		return 0, nil
	}
}

// pingHeader is the header by which a server allows a ping every 30 s. The command understudy serve
// sends it.
const (
	pingHeader = "understudy-ping"
	pingValue  = "30s"
)

// By default, gRPC servers allow one keepalive ping every 5 minutes.
var (
	defaultKeepalive  = keepalive.ClientParameters{Time: 5 * time.Minute, Timeout: 20 * time.Second}
	frequentKeepalive = keepalive.ClientParameters{Time: 30 * time.Second, Timeout: 20 * time.Second}
)

// pinging determines the keepalive interval of new connections. The interval of a connection cannot
// be changed.
type pinging struct {
	frequent bool
	revoked  bool // the server no longer allows frequent pings
}

var errPingInterval = errors.New("replaced, to ping as often as the server allows")

func keepaliveParams(frequent bool) keepalive.ClientParameters {
	if frequent {
		return frequentKeepalive
	}
	return defaultKeepalive
}

// applyHeader applies the ping header of a response. A change of the interval needs a new stream.
// If the server no longer allows frequent pings, the stream is renewed at once, before the server
// closes the connection. If the server begins to allow them, the stream is renewed after 1 to 5
// minutes, so that the clients of a server do not all reconnect at the same time. A second stream
// always starts with the long interval.
func (p *pinging) applyHeader(s *stream, headers []string) {
	allowed := len(headers) == 1 && headers[0] == pingValue
	switch {
	case p.frequent && !allowed:
		p.frequent, p.revoked = false, true
		if s.frequentPings {
			s.cancel(errPingInterval)
		}
	case !s.frequentPings && allowed && !p.revoked:
		p.frequent = true
		timer := time.AfterFunc(time.Minute+rand.N(4*time.Minute), func() { s.cancel(errPingInterval) })
		context.AfterFunc(s.ctx, func() { timer.Stop() })
	}
}
