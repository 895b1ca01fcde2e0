package serve

import (
	"context"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// silence limits how long a stream may stay without a response while the content of some files or
// targets is unknown. The server then ends the stream, so that the client tries another server.
// Otherwise, the client would stay, because this server is reachable.
const silence = 5 * time.Second

// endWith returns an interceptor that ends streams when ctx ends. Without it, health watches would
// continue. The interceptor also ends streams that get no response within silent while some content
// is unknown.
func endWith(ctx context.Context, g *gate, silent time.Duration) grpc.StreamServerInterceptor {
	return func(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
		inner, cancel := context.WithCancel(stream.Context())
		defer cancel()
		defer context.AfterFunc(ctx, cancel)()
		s := &ending{ServerStream: stream, ctx: inner}
		var late atomic.Bool
		timer := time.AfterFunc(silent, func() {
			if !s.spoken.Load() && !g.complete() {
				late.Store(true)
				cancel()
			}
		})
		defer timer.Stop()
		err := handle(srv, s)
		if late.Load() {
			return status.Error(codes.Unavailable, "not all files could be read yet, so there is no answer")
		}
		return err
	}
}

type ending struct {
	grpc.ServerStream
	ctx    context.Context
	spoken atomic.Bool
}

func (e *ending) Context() context.Context { return e.ctx }

func (e *ending) SendMsg(m any) error {
	e.spoken.Store(true)
	return e.ServerStream.SendMsg(m)
}
