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

	"github.com/understudy-lb/understudy/internal/backoff"
	"github.com/understudy-lb/understudy/internal/brief"
	"github.com/understudy-lb/understudy/internal/printable"
)

// run opens one stream after the other until ctx ends. As everywhere in gRPC, the
// backoff counts from the beginning of an attempt. So a stream that lasted for a while
// is replaced at once.
func (c *client) run(ctx context.Context) {
	attempt := 0
	for ctx.Err() == nil {
		began := time.Now()
		if answered := c.streamEnded(ctx, c.stream(ctx)); answered {
			attempt = 0
		}
		wait := time.NewTimer(time.Until(began.Add(backoff.Delay(attempt, rand.Float64()))))
		attempt++
		select {
		case <-ctx.Done():
			wait.Stop()
		case <-wait.C:
		}
	}
}

// errRenewed is the reason when the client itself ends a stream to open another.
var errRenewed = errors.New("renewed, to forget clusters that nobody watches")

// streamEnded notes that the stream ended with err, and reports whether the server had
// answered on it.
func (c *client) streamEnded(ctx context.Context, err error) (answered bool) {
	c.serial.Do(func() {
		answered = c.answered
		if answered {
			c.recorder.disconnected()
			now := time.Now()
			c.ended.Store(&now)
		}
		if ctx.Err() != nil { // closed by us: nobody is left to be told
			return
		}
		renewed := errors.Is(err, errRenewed) || errors.Is(err, errPings)
		if err != nil && !renewed {
			err = errors.New(printable.Text(brief.Text(err.Error()))) // it becomes that of calls
		}
		if renewed {
			logger.Infof("eds: stream to %s: %v", c.server.URI, err)
			err = nil
		} else if answered {
			logger.Infof("eds: stream to %s ended: %v", c.server.URI, err)
		} else {
			logger.Warningf("eds: stream to %s failed: %v", c.server.URI, err)
			c.recorder.failed()
		}
		c.closed(err)
	})
	return answered
}

// stream makes one attempt: it opens a connection of its own and one stream on it, and
// returns when the stream ends. No connection is kept from one attempt to the next:
// gRPC's backoff for connecting would add to the one for streams.
func (c *client) stream(ctx context.Context) error {
	conn, err := grpc.NewClient(c.server.URI, c.dialOptions()...)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stream, err := discoveryv3.NewAggregatedDiscoveryServiceClient(conn).StreamAggregatedResources(ctx)
	if err != nil {
		return err
	}
	mail := newMailboxes()
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		c.send(ctx, stream, mail)
	}()
	c.serial.Do(func() { c.opened(mail, func() { cancel(errRenewed) }) })
	for first := true; ; {
		response, err := stream.Recv()
		if err != nil {
			cancel(err)
			<-sent
			if cause := context.Cause(ctx); errors.Is(cause, errRenewed) || errors.Is(cause, errPings) {
				return cause
			}
			return err
		}
		c.received(response)
		if first {
			first = false
			headers, _ := stream.Header() // an error is Recv's, too
			c.pinging.heed(ctx, headers.Get(pingHeader), cancel)
		}
	}
}

func (c *client) dialOptions() []grpc.DialOption {
	return append([]grpc.DialOption{
		grpc.WithTransportCredentials(c.server.Credentials),
		grpc.WithKeepaliveParams(c.pinging.parameters()),
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
