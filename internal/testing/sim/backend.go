package sim

import (
	"context"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// The backends' unary and streaming methods, all of which return the backend's address.
const (
	method       = "/sim.Backend/Who"
	workMethod   = "/sim.Backend/Work" // may be retried
	streamMethod = "/sim.Backend/Stay"
)

type Backend struct {
	Address string
	network *Network
	onCall  func(address string)

	mu         sync.Mutex
	server     *grpc.Server   // nil while the backend is down
	draining   []*grpc.Server // have sent GOAWAY but still have calls
	health     *health.Server
	code       codes.Code
	latency    time.Duration
	queue      *queue
	resume     chan struct{} // if calls hang, closing this lets them continue; otherwise nil
	notServing bool
}

func NewBackend(n *Network, address string, onCall func(address string)) *Backend {
	return &Backend{Address: address, network: n, onCall: onCall}
}

func (b *Backend) Up() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.server == nil {
		b.start()
	}
}

func (b *Backend) start() {
	listener, err := b.network.Listen(b.Address)
	if err != nil {
		panic(err)
	}
	// If we refused a client's keepalive pings, it would double its interval, so accept them all.
	server := grpc.NewServer(grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: shortestKeepalive / 2, PermitWithoutStream: true}))
	server.RegisterService(&grpc.ServiceDesc{
		ServiceName: "sim.Backend",
		HandlerType: (*any)(nil),
		Methods:     []grpc.MethodDesc{{MethodName: "Who", Handler: b.handleWho}, {MethodName: "Work", Handler: b.handleWho}},
		Streams:     []grpc.StreamDesc{{StreamName: "Stay", Handler: b.handleStay, ServerStreams: true}},
	}, struct{}{})
	b.health = health.NewServer()
	b.setHealth()
	healthpb.RegisterHealthServer(server, b.health)
	b.server = server
	go func() { _ = server.Serve(listener) }()
}

func (b *Backend) setHealth() {
	serving := healthpb.HealthCheckResponse_SERVING
	if b.notServing {
		serving = healthpb.HealthCheckResponse_NOT_SERVING
	}
	b.health.SetServingStatus("", serving)
}

func (b *Backend) Down() {
	b.mu.Lock()
	server, draining := b.server, b.draining
	b.server, b.draining = nil, nil
	b.mu.Unlock()
	if server == nil {
		return
	}
	b.SetHang(false)
	b.network.closeListener(b.Address)
	b.network.Reset(b.Address)
	for _, s := range append(draining, server) {
		s.Stop()
	}
}

// GoAway replaces the backend's gRPC server. The old one sends GOAWAY and stops when its calls have
// ended.
func (b *Backend) GoAway() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.server == nil {
		return
	}
	old := b.server
	b.draining = append(b.draining, old)
	go func() {
		old.GracefulStop()
		b.mu.Lock()
		defer b.mu.Unlock()
		b.draining = slices.DeleteFunc(b.draining, func(s *grpc.Server) bool { return s == old })
	}()
	b.network.closeListener(b.Address)
	b.start()
}

func (b *Backend) SetServing(serving bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.notServing = !serving
	if b.server != nil {
		b.setHealth()
	}
}

func (b *Backend) SetCode(code codes.Code) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.code = code
}

func (b *Backend) SetLatency(d time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.latency = d
}

func (b *Backend) SetQueue(q *queue) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.queue = q
}

// SetHang makes all calls except health checks hang, or lets them continue if hang is false.
func (b *Backend) SetHang(hang bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if hang == (b.resume != nil) {
		return
	}
	if hang {
		b.resume = make(chan struct{})
		return
	}
	close(b.resume)
	b.resume = nil
}

func (b *Backend) handleWho(_ any, ctx context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) { //nolint:revive // gRPC requires this signature
	if err := decode(new(emptypb.Empty)); err != nil {
		return nil, err
	}
	if err := b.delayReply(ctx); err != nil {
		return nil, err
	}
	return wrapperspb.String(b.Address), nil
}

func (b *Backend) handleStay(_ any, stream grpc.ServerStream) error {
	var length durationpb.Duration
	if err := stream.RecvMsg(&length); err != nil {
		return err
	}
	if err := b.delayReply(stream.Context()); err != nil {
		return err
	}
	if err := stream.SendMsg(wrapperspb.String(b.Address)); err != nil {
		return err
	}
	return waitFor(stream.Context(), time.After(length.AsDuration()))
}

func (b *Backend) delayReply(ctx context.Context) error {
	b.onCall(b.Address)
	b.mu.Lock()
	code, resume, latency, queue := b.code, b.resume, b.latency, b.queue
	b.mu.Unlock()
	if resume != nil {
		if err := waitFor(ctx, resume); err != nil {
			return err
		}
	}
	if latency > 0 {
		if err := waitFor(ctx, time.After(latency)); err != nil {
			return err
		}
	}
	if code != codes.OK {
		return status.Error(code, "error set by the simulator")
	}
	if queue != nil {
		return queue.serve(ctx)
	}
	return nil
}

func waitFor[T any](ctx context.Context, event <-chan T) error {
	select {
	case <-event:
		return nil
	case <-ctx.Done():
		return status.FromContextError(ctx.Err()).Err()
	}
}
