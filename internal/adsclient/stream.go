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

// run opens one stream after the other until the client is stopped. As everywhere in gRPC, the
// backoff counts from the beginning of an attempt. So a stream that lasted for a while
// is replaced at once.
func (c *client) run() {
	attempt := 0
	var next *stream // that takes over, or nil
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

// errRenewed is the reason when the client itself ends a stream to open another.
var errRenewed = errors.New("renewed, to forget clusters that nobody watches")

// ours reports whether the client itself ended a stream for this reason, to use another.
func ours(err error) bool {
	return errors.Is(err, errRenewed) || errors.Is(err, errPings) || errors.Is(err, errTakenOver)
}

// streamEnded notes that the stream ended with err, and reports whether the server had
// answered on it, and which stream takes over, if one does.
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
		if c.ctx.Err() != nil { // closed by us: nobody is left to be told
			return
		}
		renewed := ours(err)
		if err != nil && !renewed {
			err = errors.New(printable.Text(printable.Brief(err.Error()))) // it becomes that of calls
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

// stream is one attempt: a connection of its own, and one stream on it. No connection is kept from
// one attempt to the next: gRPC's backoff for connecting would add to the one for streams.
type stream struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	conn   *grpc.ClientConn
	ads    adsStream
	mail   mailboxes
	sent   chan struct{} // closed when nothing is sent any more
	pinged bool          // the server is pinged every 30 s

	// Of one that takes over: the names asked for by topic, and the response read before that.
	asked [2][]string
	first *discoveryv3.DiscoveryResponse
}

// open opens a stream that lives until the client is stopped, or the stream is cancelled or closed.
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

// recv returns the next response.
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

// stream makes one attempt, which takes s where that is not nil, and returns when the stream ends.
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
				go s.close() // gRPC waits up to 5 s for a connection that takes nothing any more
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
			headers, _ := s.ads.Header() // an error is Recv's, too
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

// send sends what comes into the mailboxes until ctx ends. It has a goroutine of its
// own because Send blocks while the server does not read. An error ends the stream
// for Recv, too, which says more about it.
func (c *client) send(ctx context.Context, stream adsStream, mail mailboxes) {
	node := c.server.Node // in the first request only
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

// mailbox holds the request to be sent next. A newer one replaces one that was not sent.
// Nothing is lost by that, for each names everything that is wanted and answers the last
// response. So memory stays bounded whatever a server does.
type mailbox struct{ slot chan *ads.Request }

func newMailbox() *mailbox { return &mailbox{make(chan *ads.Request, 1)} }

// put is called by one goroutine at a time.
func (m *mailbox) put(r *ads.Request) {
	select {
	case unsent := <-m.slot:
		r = r.Replacing(unsent)
	default:
	}
	m.slot <- r
}

// mailboxes are those of a stream, one for each topic of its client.
type mailboxes [2]*mailbox

func newMailboxes() mailboxes { return mailboxes{newMailbox(), newMailbox()} }

// take returns the next request and the number of its topic, or nil when ctx has ended.
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

// pingHeader is the header of a stream by which a server, such as serve of understudy, says
// that it allows a ping every 30 s.
const (
	pingHeader = "understudy-ping"
	pingValue  = "30s"
)

// Clients notice by pings a server that is gone without a word. Servers allow one every 5
// minutes, unless they are told otherwise.
var (
	seldomPings = keepalive.ClientParameters{Time: 5 * time.Minute, Timeout: 20 * time.Second}
	oftenPings  = keepalive.ClientParameters{Time: 30 * time.Second, Timeout: 20 * time.Second}
)

// pinging is how a client pings, which is settled when a connection is made. It is touched by
// the goroutine that runs the streams.
type pinging struct {
	often   bool
	refused bool // a server did not allow it after another did: never again
}

var errPings = errors.New("renewed, to ping as often as the server allows")

func pings(often bool) keepalive.ClientParameters {
	if often {
		return oftenPings
	}
	return seldomPings
}

// heed takes note of what a server says of pings, by the headers of a stream that it answered,
// and has the stream renewed where the connection is to be another: after 1 to 5 minutes at random,
// so that a server's clients do not come back at once, or now where the server would end it.
// The connection may be a second one, which took over, and is pinged seldom.
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
