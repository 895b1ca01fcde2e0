package serve

import (
	"context"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// responseTimeout is the maximum time that a stream stays open without a response while the content
// of some files or targets is unknown. The server then ends the stream, so that the client tries
// another server. Otherwise, the client would wait, because this server is reachable.
const responseTimeout = 5 * time.Second

// streamInterceptor returns an interceptor that ends streams when ctx ends. Without it, health
// watches would delay the end of the server. The interceptor also ends streams that get no response
// within the timeout while some content is unknown.
func streamInterceptor(ctx context.Context, g *gate, timeout time.Duration) grpc.StreamServerInterceptor {
	return func(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
		streamCtx, cancel := context.WithCancel(stream.Context())
		defer cancel()
		defer context.AfterFunc(ctx, cancel)()
		s := &trackedStream{ServerStream: stream, ctx: streamCtx}
		var timedOut atomic.Bool
		timer := time.AfterFunc(timeout, func() {
			if !s.hasSent.Load() && !g.isComplete() {
				timedOut.Store(true)
				cancel()
			}
		})
		defer timer.Stop()
		err := handle(srv, s)
		if timedOut.Load() {
			return status.Error(codes.Unavailable, "not all files could be read yet, so there is no answer")
		}
		return err
	}
}

type trackedStream struct {
	grpc.ServerStream
	ctx     context.Context
	hasSent atomic.Bool
}

func (e *trackedStream) Context() context.Context { return e.ctx }

func (e *trackedStream) SendMsg(m any) error {
	e.hasSent.Store(true)
	return e.ServerStream.SendMsg(m)
}
