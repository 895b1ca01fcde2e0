package serve

import (
	"context"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// silence is how long a stream stays open on which nothing can be said, since not all is known. Then it
// ends, so that its client asks the next server that it knows, which it would not as long as
// this one listens.
const silence = 5 * time.Second

// endWith ends streams when ctx does: those of clients that watch the server's health
// would outlast it. It also ends those that are told nothing for too long.
func endWith(ctx context.Context, g *gate) grpc.StreamServerInterceptor {
	return func(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
		inner, cancel := context.WithCancel(stream.Context())
		defer cancel()
		defer context.AfterFunc(ctx, cancel)()
		s := &ending{ServerStream: stream, ctx: inner}
		var silent atomic.Bool
		timer := time.AfterFunc(silence, func() {
			if !s.spoken.Load() && !g.complete() {
				silent.Store(true)
				cancel()
			}
		})
		defer timer.Stop()
		err := handle(srv, s)
		if silent.Load() {
			return status.Error(codes.Unavailable, "not all files could be read yet, so there is no answer")
		}
		return err
	}
}

// ending is a stream with a context of its own.
type ending struct {
	grpc.ServerStream
	ctx    context.Context
	spoken atomic.Bool // whether anything was sent
}

// Context returns it.
func (e *ending) Context() context.Context { return e.ctx }

// SendMsg sends a message.
func (e *ending) SendMsg(m any) error {
	e.spoken.Store(true)
	return e.ServerStream.SendMsg(m)
}
