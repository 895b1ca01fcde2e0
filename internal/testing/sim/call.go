package sim

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	estats "google.golang.org/grpc/experimental/stats"
	"google.golang.org/grpc/stats"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

type call struct {
	start time.Time
	made  int

	mu     sync.Mutex
	to     string // where the last attempt was sent; "" while the call waits for a pick
	sentAt time.Time
}

type callKey struct{}

func (c *call) sent() (string, time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.to, c.sentAt
}

// make calls a backend and returns its answer. If wait is set, the call is wait-for-ready.
func (c *call) make(cc *grpc.ClientConn, deadline time.Duration, wait bool) (string, error) {
	ctx, cancel := context.WithTimeout(context.WithValue(context.Background(), callKey{}, c), deadline)
	defer cancel()
	var answer wrapperspb.StringValue
	err := cc.Invoke(ctx, method, new(emptypb.Empty), &answer, grpc.WaitForReady(wait))
	return answer.GetValue(), err
}

var streamDesc = &grpc.StreamDesc{StreamName: "Stay", ServerStreams: true}

// open opens a stream and waits for its first message. The backend ends the stream after length.
func (c *call) open(ctx context.Context, cc *grpc.ClientConn, length time.Duration, wait bool) (grpc.ClientStream, error) {
	ctx = context.WithValue(ctx, callKey{}, c)
	stream, err := cc.NewStream(ctx, streamDesc, streamMethod, grpc.WaitForReady(wait))
	if err != nil {
		return nil, err
	}
	if err := stream.SendMsg(durationpb.New(length)); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if err := stream.CloseSend(); err != nil {
		return nil, err
	}
	var answer wrapperspb.StringValue
	return stream, stream.RecvMsg(&answer)
}

// observer records where attempts are sent, and the failovers that the metrics count.
type observer struct {
	estats.UnimplementedMetricsRecorder
	sentTo   func(address string)
	ended    func(address string, sent time.Time, err error)
	failover func(from, to string)
}

func (o *observer) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }

func (o *observer) HandleRPC(ctx context.Context, s stats.RPCStats) {
	c, ok := ctx.Value(callKey{}).(*call)
	if !ok {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch s := s.(type) {
	case *stats.Begin:
		c.to = ""
	case *stats.OutHeader:
		c.to, c.sentAt = s.RemoteAddr.String(), time.Now()
		o.sentTo(c.to)
	case *stats.End:
		if c.to != "" {
			o.ended(c.to, c.sentAt, s.Error)
		}
	}
}

func (o *observer) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

func (o *observer) HandleConn(context.Context, stats.ConnStats) {}

func (o *observer) RecordInt64Count(handle *estats.Int64CountHandle, _ int64, labels ...string) {
	d := handle.Descriptor()
	if d.Name != "understudy.priority.failovers" {
		return
	}
	var from, to string
	for i, label := range append(append([]string(nil), d.Labels...), d.OptionalLabels...) {
		switch {
		case i >= len(labels):
		case strings.HasSuffix(label, "from"):
			from = labels[i]
		case strings.HasSuffix(label, "to"):
			to = labels[i]
		}
	}
	o.failover(from, to)
}
