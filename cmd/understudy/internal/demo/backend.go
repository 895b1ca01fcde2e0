package demo

import (
	"cmp"
	"context"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health"
	healthgrpc "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/understudy-lb/understudy"
)

type mode int32

const (
	killed mode = iota // refuses connections
	serving
	full    // answers 100 calls a second, shared with the rest of its priority
	failing // answers calls with errors, but health checks with SERVING
	hung    // accepts connections but neither reads nor writes, like a stopped process
)

func (m mode) String() string { return [...]string{"killed", "serving", "full", "errors", "hung"}[m] }

type backend struct {
	locality                         string // region/zone
	priority, localityWeight, weight int
	address                          string
	mode                             atomic.Int32
	server                           *grpc.Server // nil while killed
	gate                             sync.RWMutex // locked while hanging
	limit                            *time.Ticker // shared by the priority; in mode full, a call has to wait for a tick
}

func (b *backend) current() mode { return mode(b.mode.Load()) }

func (b *backend) set(m mode) error {
	// When a backend is killed, its connections end without a GOAWAY, as if the process had died.
	if m != killed && b.server == nil {
		if err := b.start(); err != nil {
			return err
		}
	}
	switch was := mode(b.mode.Swap(int32(m))); {
	case m == hung && was != hung:
		b.gate.Lock()
	case m != hung && was == hung:
		b.gate.Unlock()
	}
	if m == killed && b.server != nil {
		b.server.Stop()
		b.server = nil
	}
	return nil
}

func (b *backend) start() error {
	inner, err := net.Listen("tcp", cmp.Or(b.address, "127.0.0.1:0"))
	if err != nil {
		return err
	}
	if b.address == "" {
		b.address = inner.Addr().String()
	}
	// Stop waits for handshakes, so don't give them more than a second.
	b.server = grpc.NewServer(understudy.Recommended().ServerKeepalive(), grpc.ConnectionTimeout(time.Second))
	b.server.RegisterService(&service, b)
	healthgrpc.RegisterHealthServer(b.server, health.NewServer())
	go b.server.Serve(listener{inner, &b.gate}) //nolint:errcheck // it only says that the server was killed
	return nil
}

// While the gate is locked, connections are accepted but don't transfer anything.
type listener struct {
	net.Listener
	gate *sync.RWMutex
}

func (l listener) Accept() (net.Conn, error) {
	inner, err := l.Listener.Accept()
	return &conn{inner, l.gate}, err
}

type conn struct {
	net.Conn
	gate *sync.RWMutex
}

func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.pass()
	return n, err
}

func (c *conn) Write(p []byte) (int, error) {
	c.pass()
	return c.Conn.Write(p)
}

func (c *conn) pass() {
	c.gate.RLock()
	defer c.gate.RUnlock()
}

const whoAmI = "/understudy.demo.v1.Demo/WhoAmI"

var service = grpc.ServiceDesc{
	ServiceName: "understudy.demo.v1.Demo",
	HandlerType: (*any)(nil),
	Methods: []grpc.MethodDesc{{
		MethodName: "WhoAmI",
		Handler: func(server any, ctx context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
			if err := decode(&emptypb.Empty{}); err != nil {
				return nil, err
			}
			b := server.(*backend)
			switch b.current() {
			case failing:
				return nil, status.Error(codes.Internal, "the demo told this backend to fail")
			case full:
				select {
				case <-b.limit.C:
				case <-ctx.Done():
				}
			}
			return wrapperspb.String(b.address), nil
		},
	}},
}

func callWhoAmI(ctx context.Context, cc grpc.ClientConnInterface) (address string, err error) {
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	var answer wrapperspb.StringValue
	err = cc.Invoke(ctx, whoAmI, &emptypb.Empty{}, &answer)
	return answer.GetValue(), err
}

func (b *backend) answers() bool { return b.current() == serving || b.current() == full }
