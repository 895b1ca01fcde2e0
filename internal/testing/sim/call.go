package sim

import (
	"cmp"
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
	start  time.Time
	number int
	method string // "" means the default method

	mu      sync.Mutex
	address string // endpoint of the last attempt; "" while that's waiting for a pick
	sentAt  time.Time
}

type callKey struct{}

func (c *call) lastAttempt() (string, time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.address, c.sentAt
}

func (c *call) invoke(cc *grpc.ClientConn, deadline time.Duration, waitForReady bool) (string, error) {
	ctx, cancel := context.WithTimeout(context.WithValue(context.Background(), callKey{}, c), deadline)
	defer cancel()
	var answer wrapperspb.StringValue
	err := cc.Invoke(ctx, cmp.Or(c.method, method), new(emptypb.Empty), &answer, grpc.WaitForReady(waitForReady))
	return answer.GetValue(), err
}

var streamDesc = &grpc.StreamDesc{StreamName: "Stay", ServerStreams: true}

// openStream opens a stream that the backend ends after length.
func (c *call) openStream(ctx context.Context, cc *grpc.ClientConn, length time.Duration, waitForReady bool) (grpc.ClientStream, error) {
	ctx = context.WithValue(ctx, callKey{}, c)
	stream, err := cc.NewStream(ctx, streamDesc, streamMethod, grpc.WaitForReady(waitForReady))
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

// observer is a stats handler that reports when attempts are sent and end. It's also a metrics
// recorder that reports failovers.
type observer struct {
	estats.UnimplementedMetricsRecorder
	onSend     func(address string)
	onEnd      func(address string, sent time.Time, err error)
	onFailover func(from, to string)
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
		c.address = ""
	case *stats.OutHeader:
		c.address, c.sentAt = s.RemoteAddr.String(), time.Now()
		o.onSend(c.address)
	case *stats.End:
		if c.address != "" {
			o.onEnd(c.address, c.sentAt, s.Error)
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
	o.onFailover(from, to)
}
