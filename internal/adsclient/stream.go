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
	"github.com/understudy-lb/understudy/internal/printable"
	"github.com/understudy-lb/understudy/internal/xnet"
)

// run opens one stream after another. As everywhere in gRPC, the backoff counts from the beginning
// of an attempt. If a stream has lasted longer than its backoff, the next one is therefore opened
// at once.
func (c *client) run() {
	attempt := 0
	var next *stream // a second stream that is about to take over
	for c.ctx.Err() == nil {
		began := time.Now()
		var answered bool
		answered, next = c.streamEnded(c.stream(next))
		if answered {
			attempt = 0
		}
		if next != nil {
			continue
		}
		xnet.Rest(c.ctx, time.Until(began.Add(xnet.Backoff(attempt, rand.Float64()))))
		attempt++
	}
	if next != nil {
		next.close()
	}
}

var errRenewed = errors.New("renewed, to forget clusters that nobody watches")

// ours reports whether the client itself ended the stream in order to replace it.
func ours(err error) bool {
	return errors.Is(err, errRenewed) || errors.Is(err, errPings) || errors.Is(err, errTakenOver)
}

// streamEnded handles the end of the stream. answered reports whether a response had arrived on it.
// next is the second stream that takes over, or nil.
func (c *client) streamEnded(err error) (answered bool, next *stream) {
	c.serial.Do(func() {
		answered = c.answered
		if answered {
			c.count(connectedMetric, -1)
			now := time.Now()
			c.ended.Store(&now)
		}
		c.current = nil
		c.trust()
		next, c.doubt.next = c.doubt.next, nil
		if c.ctx.Err() != nil {
			return
		}
		renewed := ours(err)
		if err != nil && !renewed {
			err = errors.New(printable.Text(printable.Brief(err.Error()))) // err becomes part of the errors of calls, so its text is shortened and made printable
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

// stream is an ADS stream with its own connection. A connection is not reused, because gRPC's
// backoff for connections would be added to the backoff for streams.
type stream struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	conn   *grpc.ClientConn
	ads    adsStream
	mail   mailboxes
	sent   chan struct{}
	pinged bool // a keepalive ping is sent every 30 s

	// The following fields are used only by a second stream: the requested names by topic, and the
	// first response.
	asked [2][]string
	first *discoveryv3.DiscoveryResponse
}

func (c *client) open(ctx context.Context, cancel context.CancelCauseFunc, pinged bool) (*stream, error) {
	conn, err := grpc.NewClient(c.server.URI, c.dialOptions(pinged)...)
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
	s := &stream{ctx: ctx, cancel: cancel, pinged: pinged, conn: conn, ads: ads, mail: newMailboxes(), sent: make(chan struct{})}
	go func() {
		defer close(s.sent)
		c.send(ctx, ads, s.mail)
	}()
	return s, nil
}

func (s *stream) recv() (*discoveryv3.DiscoveryResponse, error) {
	if first := s.first; first != nil {
		s.first = nil
		return first, nil
	}
	return s.ads.Recv()
}

func (s *stream) close() {
	s.cancel(nil)
	<-s.sent
	_ = s.conn.Close()
}

// stream runs s until it ends. If s is nil, it opens a new stream.
func (c *client) stream(s *stream) error {
	if s == nil {
		var err error
		ctx, cancel := context.WithCancelCause(c.ctx)
		if s, err = c.open(ctx, cancel, c.pinging.often); err != nil {
			return err
		}
	}
	c.serial.Do(func() { c.opened(s) })
	for first := true; ; first = false {
		response, err := s.recv()
		if err != nil {
			cause := context.Cause(s.ctx)
			if errors.Is(cause, errTakenOver) {
				go s.close() // not awaited, because gRPC waits up to 5 s for a connection that accepts no data
				return cause
			}
			s.close()
			if ours(cause) {
				return cause
			}
			return err
		}
		c.received(response)
		if first {
			headers, _ := s.ads.Header() // the error is ignored, because Recv returns the same one
			c.pinging.heed(s, headers.Get(pingHeader))
		}
	}
}

func (c *client) dialOptions(pinged bool) []grpc.DialOption {
	return append([]grpc.DialOption{
		grpc.WithTransportCredentials(c.server.Credentials),
		grpc.WithKeepaliveParams(pings(pinged)),
		grpc.WithDisableServiceConfig(),
		grpc.WithIdleTimeout(0),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(c.server.MaxResponse)),
	}, c.server.DialOptions...)
}

type adsStream = discoveryv3.AggregatedDiscoveryService_StreamAggregatedResourcesClient

// send sends the requests in the mailboxes. It runs on its own goroutine, because Send blocks while
// the server does not read. It ignores errors, because Recv returns them in more detail.
func (c *client) send(ctx context.Context, stream adsStream, mail mailboxes) {
	node := c.server.Node // sent only in the first request
	for {
		i, r := mail.take(ctx)
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

// mailbox holds the next request. A new request may replace an unsent one, because each request
// lists all subscriptions and acknowledges the last response. The mailbox therefore holds at most
// one request, even if the server does not read.
type mailbox struct{ slot chan *ads.Request }

func newMailbox() *mailbox { return &mailbox{make(chan *ads.Request, 1)} }

// put replaces the request in the mailbox. Only one goroutine may call it at a time.
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

// pingHeader is the header with which a server, such as understudy serve, allows a ping every 30 s.
const (
	pingHeader = "understudy-ping"
	pingValue  = "30s"
)

// By default, gRPC servers allow one keepalive ping every 5 minutes.
var (
	seldomPings = keepalive.ClientParameters{Time: 5 * time.Minute, Timeout: 20 * time.Second}
	oftenPings  = keepalive.ClientParameters{Time: 30 * time.Second, Timeout: 20 * time.Second}
)

// pinging determines the keepalive interval of new connections. The interval of a connection cannot
// be changed.
type pinging struct {
	often   bool
	refused bool // a server that allowed frequent pings no longer does
}

var errPings = errors.New("renewed, to ping as often as the server allows")

func pings(often bool) keepalive.ClientParameters {
	if often {
		return oftenPings
	}
	return seldomPings
}

// heed applies the ping header of a response. A different interval needs a new stream. If the
// server would otherwise close the connection, the stream is renewed at once. Otherwise, it is
// renewed after 1 to 5 minutes, so that the clients of a server do not all reconnect at the same
// time. A second stream always starts with the long interval.
func (p *pinging) heed(s *stream, headers []string) {
	allows := len(headers) == 1 && headers[0] == pingValue
	switch {
	case p.often && !allows:
		p.often, p.refused = false, true
		if s.pinged {
			s.cancel(errPings)
		}
	case !s.pinged && allows && !p.refused:
		p.often = true
		timer := time.AfterFunc(time.Minute+rand.N(4*time.Minute), func() { s.cancel(errPings) })
		context.AfterFunc(s.ctx, func() { timer.Stop() })
	}
}
