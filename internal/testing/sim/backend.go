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

// The backends' unary and streaming methods. Both answer with the backend's address.
const (
	method       = "/sim.Backend/Who"
	streamMethod = "/sim.Backend/Stay"
)

// Backend is a gRPC server at one address of the simulated network.
type Backend struct {
	Address string
	network *Network
	calls   func(address string)

	mu     sync.Mutex
	server *grpc.Server   // nil while the backend is down
	old    []*grpc.Server // servers that have sent GOAWAY
	health *health.Server
	answer codes.Code // OK, or the error that the backend answers with
	takes  time.Duration
	hang   chan struct{} // open while calls hang; nil if they do not
	sick   bool
}

func NewBackend(n *Network, address string, calls func(address string)) *Backend {
	return &Backend{Address: address, network: n, calls: calls}
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
	// The server must accept the clients' pings. After a refusal, a client pings half as often.
	server := grpc.NewServer(grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: shortestKeepalive / 2, PermitWithoutStream: true}))
	server.RegisterService(&grpc.ServiceDesc{
		ServiceName: "sim.Backend",
		HandlerType: (*any)(nil),
		Methods:     []grpc.MethodDesc{{MethodName: "Who", Handler: b.who}},
		Streams:     []grpc.StreamDesc{{StreamName: "Stay", Handler: b.stay, ServerStreams: true}},
	}, struct{}{})
	b.health = health.NewServer()
	b.setHealth()
	healthpb.RegisterHealthServer(server, b.health)
	b.server = server
	go func() { _ = server.Serve(listener) }()
}

func (b *Backend) setHealth() {
	serving := healthpb.HealthCheckResponse_SERVING
	if b.sick {
		serving = healthpb.HealthCheckResponse_NOT_SERVING
	}
	b.health.SetServingStatus("", serving)
}

// Down resets all connections and refuses new ones.
func (b *Backend) Down() {
	b.mu.Lock()
	server, old := b.server, b.old
	b.server, b.old = nil, nil
	b.mu.Unlock()
	if server == nil {
		return
	}
	b.Hang(false)
	b.network.closeListener(b.Address)
	b.network.Reset(b.Address)
	for _, s := range append(old, server) {
		s.Stop()
	}
}

// GoAway replaces the server by a new one. The old one sends GOAWAY and stops when its calls have
// ended.
func (b *Backend) GoAway() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.server == nil {
		return
	}
	old := b.server
	b.old = append(b.old, old)
	go func() {
		old.GracefulStop()
		b.mu.Lock()
		defer b.mu.Unlock()
		b.old = slices.DeleteFunc(b.old, func(s *grpc.Server) bool { return s == old })
	}()
	b.network.closeListener(b.Address)
	b.start()
}

// Drain stops the backend gracefully. It sends GOAWAY and stops listening.
func (b *Backend) Drain() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.server == nil {
		return
	}
	b.network.closeListener(b.Address)
	go b.server.GracefulStop()
	b.server = nil
}

func (b *Backend) SetServing(serving bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sick = !serving
	if b.server != nil {
		b.setHealth()
	}
}

func (b *Backend) Answer(code codes.Code) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.answer = code
}

func (b *Backend) Take(d time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.takes = d
}

// Hang makes calls hang if hang is true, and lets them continue otherwise. Health checks are not
// affected.
func (b *Backend) Hang(hang bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if hang == (b.hang != nil) {
		return
	}
	if hang {
		b.hang = make(chan struct{})
		return
	}
	close(b.hang)
	b.hang = nil
}

func (b *Backend) who(_ any, ctx context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) { //nolint:revive // gRPC requires this signature
	if err := decode(new(emptypb.Empty)); err != nil {
		return nil, err
	}
	if err := b.answered(ctx); err != nil {
		return nil, err
	}
	return wrapperspb.String(b.Address), nil
}

func (b *Backend) stay(_ any, stream grpc.ServerStream) error {
	var length durationpb.Duration
	if err := stream.RecvMsg(&length); err != nil {
		return err
	}
	if err := b.answered(stream.Context()); err != nil {
		return err
	}
	if err := stream.SendMsg(wrapperspb.String(b.Address)); err != nil {
		return err
	}
	return wait(stream.Context(), time.After(length.AsDuration()))
}

// answered waits as long as the backend takes to answer. It returns the error of the answer.
func (b *Backend) answered(ctx context.Context) error {
	b.calls(b.Address)
	b.mu.Lock()
	code, hang, takes := b.answer, b.hang, b.takes
	b.mu.Unlock()
	if hang != nil {
		if err := wait(ctx, hang); err != nil {
			return err
		}
	}
	if takes > 0 {
		if err := wait(ctx, time.After(takes)); err != nil {
			return err
		}
	}
	if code != codes.OK {
		return status.Error(code, "error set by the simulator")
	}
	return nil
}

// wait waits for an event. It returns an error if ctx ends first.
func wait[T any](ctx context.Context, event <-chan T) error {
	select {
	case <-event:
		return nil
	case <-ctx.Done():
		return status.FromContextError(ctx.Err()).Err()
	}
}
