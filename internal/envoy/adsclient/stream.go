package adsclient

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
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

// Each stream has its own connection. If they shared one, gRPC's backoff for connections would come
// on top of ours.
type stream struct {
	ctx           context.Context
	cancel        context.CancelCauseFunc // the cause says why the stream ended
	mailboxes     mailboxes
	frequentPings bool        // pings every 30 s
	requested     [2][]string // names we've requested on this stream while it was the second one, by topic
}

func (c *client) newStream(frequentPings bool) *stream {
	ctx, cancel := context.WithCancelCause(c.ctx)
	return &stream{ctx: ctx, cancel: cancel, mailboxes: newMailboxes(), frequentPings: frequentPings}
}

func (c *client) run(s *stream) {
	// Whenever the current stream ends, we open the next one. As elsewhere in gRPC, the backoff
	// starts with the attempt rather than with its failure. So if the stream was open for longer
	// than the backoff, we reconnect right away.
	for c.ctx.Err() == nil {
		start, isCurrent := time.Now(), false
		// This ends up in the errors of calls, so keep it short and printable.
		s.cancel(errors.New(printable.Text(printable.Brief(c.serve(s).Error()))))
		c.serial.Do(func() { isCurrent = c.streamEnded(s, context.Cause(s.ctx)) })
		if !isCurrent {
			return
		}
		xnet.Rest(c.ctx, time.Until(start.Add(xnet.Backoff(c.attempts, rand.Float64()))))
		c.serial.Do(func() {
			c.attempts++
			s = c.newStream(c.pings == pingsFrequent)
			c.current = s
		})
	}
}

func (c *client) serve(s *stream) error {
	conn, err := grpc.NewClient(c.server.URI, c.dialOptions(s.frequentPings)...)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	rpc, err := discoveryv3.NewAggregatedDiscoveryServiceClient(conn).StreamAggregatedResources(s.ctx)
	if err != nil {
		return err
	}
	go c.send(s, rpc)
	c.serial.Do(func() {
		if s == c.current {
			c.requestAll(s)
		} else {
			c.requestOnSecond(s)
		}
	})
	for {
		response, err := rpc.Recv()
		if err != nil {
			return err
		}
		headers, _ := rpc.Header() // Recv would return the same error
		c.received(s, response, headers.Get(pingHeader))
	}
}

var errRenewed = errors.New("replaced, to unsubscribe from clusters that nobody watches")

func (c *client) streamEnded(s *stream, err error) (wasCurrent bool) {
	if s == c.second.stream && c.ctx.Err() == nil {
		c.cancelSecond()
		logger.Infof("eds: second stream to %s: %v; the first one stays in use", c.server.URI, err)
	}
	if s != c.current {
		return false
	}
	c.cancelSecond()
	answered := c.answered
	c.current, c.answered = nil, false
	if answered {
		c.count(connectedMetric, -1)
		c.ended = time.Now()
	}
	switch {
	case c.ctx.Err() != nil:
		err = nil
	case errors.Is(err, errRenewed) || errors.Is(err, errPingInterval) || errors.Is(err, errTakenOver):
		logger.Infof("eds: stream to %s: %v", c.server.URI, err)
		err = nil
	case answered: // since there was a response, this isn't a failure (gRFC A57)
		logger.Infof("eds: stream to %s ended: %v", c.server.URI, err)
		err = nil
	default:
		logger.Warningf("eds: stream to %s failed: %v", c.server.URI, err)
		c.count(failedMetric, 1)
		c.recordOutage(err)
	}
	for _, t := range c.topics {
		t.dropDelayed()
		t.execute(t.subs.Closed(err))
	}
	return true
}

func (c *client) requestAll(s *stream) {
	// If s was the second stream, it has already sent some of the requests. Don't repeat those.
	c.current = s
	for i, t := range c.topics {
		a := t.subs.Opened()
		if a.Send != nil && slices.Equal(a.Send.Names, s.requested[i]) {
			a.Send = nil
		}
		t.execute(a)
	}
}

func (c *client) dialOptions(frequentPings bool) []grpc.DialOption {
	pings := keepalive.ClientParameters{Time: 5 * time.Minute, Timeout: 20 * time.Second}
	if frequentPings {
		pings.Time = 30 * time.Second
	}
	options := []grpc.DialOption{
		grpc.WithTransportCredentials(c.server.Credentials),
		grpc.WithKeepaliveParams(pings),
		grpc.WithDisableServiceConfig(),
		grpc.WithIdleTimeout(0),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(c.server.MaxResponse)),
	}
	if n := c.server.Network; n != nil {
		options = append(options, grpc.WithContextDialer(n.Dial))
	}
	return append(options, c.server.DialOptions...)
}

func (c *client) send(s *stream, rpc discoveryv3.AggregatedDiscoveryService_StreamAggregatedResourcesClient) {
	// Send blocks if the server doesn't read, so it needs its own goroutine. We don't have to look
	// at its errors, because Recv returns more detailed ones.
	node := c.server.Node // only sent with the first request
	for {
		i, r := s.mailboxes.take(s.ctx)
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
		if rpc.Send(request) != nil {
			return
		}
		node = nil
	}
}

// mailbox has the next request of a topic. A request lists all subscriptions and acknowledges the
// last response, so it's fine to drop one that hasn't been sent when there's a newer one. That way,
// we never need more than one, even if the server doesn't read at all.
type mailbox chan *ads.Request

// Not safe for concurrent use.
func (m mailbox) put(r *ads.Request) {
	select {
	case unsent := <-m:
		r = r.Replacing(unsent)
	default:
	}
	m <- r
}

type mailboxes [2]mailbox

func newMailboxes() mailboxes { return mailboxes{make(mailbox, 1), make(mailbox, 1)} }

func (m mailboxes) take(ctx context.Context) (int, *ads.Request) {
	select {
	case r := <-m[0]:
		return 0, r
	case r := <-m[1]:
		return 1, r
	case <-ctx.Done():
		return 0, nil
	}
}

// A server sends this header to allow a ping every 30 s. understudy serve does.
const (
	pingHeader = "understudy-ping"
	pingValue  = "30s"
)

// pings is the interval for new streams. On an open connection, it can't be changed.
type pings int

const (
	pingsRare     pings = iota // every 5 minutes, the shortest interval that gRPC servers allow by default
	pingsFrequent              // every 30 s
	pingsRevoked               // every 5 minutes, since the server has changed its mind
)

var errPingInterval = errors.New("replaced, to ping as often as the server allows")

func (c *client) applyPingHeader(s *stream, values []string) {
	// It takes a new stream to change the interval. If the server no longer allows frequent pings,
	// we have to replace the stream right away, or the server will close the connection. In the
	// other direction we take 1 to 5 minutes, so that the server's clients don't all reconnect at
	// once. A second stream always starts with the long interval.
	allowed := len(values) == 1 && values[0] == pingValue
	switch {
	case c.pings == pingsFrequent && !allowed:
		c.pings = pingsRevoked
		if s.frequentPings {
			s.cancel(errPingInterval)
		}
	case !s.frequentPings && allowed && c.pings != pingsRevoked:
		c.pings = pingsFrequent
		timer := time.AfterFunc(time.Minute+rand.N(4*time.Minute), func() { s.cancel(errPingInterval) })
		context.AfterFunc(s.ctx, func() { timer.Stop() })
	}
}
