package main

import (
	"context"
	"crypto/tls"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthgrpc "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/understudy-lb/understudy"
)

var service = grpc.ServiceDesc{
	ServiceName: "league.Backend",
	HandlerType: (*any)(nil),
	Methods: []grpc.MethodDesc{{MethodName: "Name", Handler: func(srv any, ctx context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
		if err := decode(&emptypb.Empty{}); err != nil {
			return nil, err
		}
		b := srv.(*backend)
		if err := (*b.behavior.Load())(ctx); err != nil {
			return nil, err
		}
		return wrapperspb.String(b.priority), nil
	}}},
}

const serviceName, methodName = "league.Backend", "/league.Backend/Name"

func callName(ctx context.Context, cc grpc.ClientConnInterface) (string, error) {
	var answer wrapperspb.StringValue
	err := cc.Invoke(ctx, methodName, &emptypb.Empty{}, &answer)
	return answer.GetValue(), err
}

const answerAfter = 10 * time.Millisecond

func answerAfterDelay(d time.Duration) func(context.Context) error {
	return func(ctx context.Context) error {
		select {
		case <-time.After(d):
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func failWith(code codes.Code) func(context.Context) error {
	return func(context.Context) error { return status.Error(code, "a fault of the league") }
}

func hang(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

// oneWorker makes calls wait for each other, but not for those whose callers have left.
func oneWorker(service time.Duration) func(context.Context) error {
	worker, answer := make(chan struct{}, 1), answerAfterDelay(service)
	return func(ctx context.Context) error {
		select {
		case worker <- struct{}{}:
			defer func() { <-worker }()
			return answer(ctx)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// A backend is a server of one priority with its own address. Faults change how it behaves.
type backend struct {
	priority, address string
	certificate       atomic.Pointer[tls.Certificate]
	behavior          atomic.Pointer[func(context.Context) error]

	mu       sync.Mutex
	listener *net.TCPListener
	server   *grpc.Server
	health   *health.Server
	conns    map[*acceptedConn]bool
	lifetime time.Duration // new connections end after this, unless it's 0
}

func startBackend(priority, address string, certificate *tls.Certificate) (*backend, error) {
	b := &backend{priority: priority, address: address, conns: make(map[*acceptedConn]bool)}
	b.certificate.Store(certificate)
	b.setBehavior(answerAfterDelay(answerAfter))
	return b, b.start()
}

func (b *backend) setBehavior(behavior func(context.Context) error) { b.behavior.Store(&behavior) }

// fill makes half of one client's calls more than the backend can answer.
func (b *backend) fill() { b.setBehavior(oneWorker(60 * time.Millisecond)) }

func (b *backend) start() error {
	var config net.ListenConfig
	config.SetMultipathTCP(false) // socket filters don't work with multipath TCP
	l, err := config.Listen(context.Background(), "tcp", b.address)
	if err != nil {
		return err
	}
	server := grpc.NewServer(understudy.Recommended().ServerKeepalive(), grpc.Creds(b.security()))
	server.RegisterService(&service, b)
	health := health.NewServer()
	healthgrpc.RegisterHealthServer(server, health)
	b.mu.Lock()
	b.listener, b.server, b.health = l.(*net.TCPListener), server, health
	b.mu.Unlock()
	go server.Serve(&listener{l.(*net.TCPListener), b}) //nolint:errcheck // the server ends with the backend
	return nil
}

func (b *backend) security() credentials.TransportCredentials {
	if b.certificate.Load() == nil {
		return insecure.NewCredentials()
	}
	return credentials.NewTLS(&tls.Config{GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return b.certificate.Load(), nil }})
}

func (b *backend) kill() {
	b.mu.Lock()
	server, listener := b.server, b.listener
	b.mu.Unlock()
	server.Stop()
	listener.Close() //nolint:errcheck // needed only if the server does not serve yet
}

// drain sends GOAWAY on each connection at once, but keeps it until its calls have ended.
func (b *backend) drain() {
	b.mu.Lock()
	defer b.mu.Unlock()
	go b.server.GracefulStop()
}

func (b *backend) setNotServing() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.health.SetServingStatus("", healthgrpc.HealthCheckResponse_NOT_SERVING)
}

func (b *backend) reset() {
	for _, c := range b.connections() {
		c.SetLinger(0) //nolint:errcheck // the connection may be closed already
		c.Close()      //nolint:errcheck // the connection may be closed already
	}
}

func (b *backend) crash(lifetime time.Duration) {
	b.mu.Lock()
	b.lifetime = lifetime
	b.mu.Unlock()
	for _, c := range b.connections() {
		c.Close() //nolint:errcheck // the connection may be closed already
	}
}

// dropReceived makes the kernel drop everything that arrives at the listener and its connections.
func (b *backend) dropReceived() error {
	b.mu.Lock()
	socket, err := b.listener.SyscallConn()
	b.mu.Unlock()
	if err == nil {
		err = dropReceived(socket)
	}
	for _, c := range b.connections() {
		if socket, closed := c.SyscallConn(); closed == nil {
			dropReceived(socket) //nolint:errcheck // the connection may be closed already
		}
	}
	return err
}

func (b *backend) connections() (all []*acceptedConn) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for c := range b.conns {
		all = append(all, c)
	}
	return all
}

type listener struct {
	*net.TCPListener
	b *backend
}

func (l *listener) Accept() (net.Conn, error) {
	conn, err := l.AcceptTCP()
	if err != nil {
		return nil, err
	}
	c := &acceptedConn{conn, l.b}
	l.b.mu.Lock()
	defer l.b.mu.Unlock()
	l.b.conns[c] = true
	if l.b.lifetime > 0 {
		time.AfterFunc(l.b.lifetime, func() { c.Close() }) //nolint:errcheck // the connection may be closed already
	}
	return c, nil
}

type acceptedConn struct {
	*net.TCPConn
	b *backend
}

func (c *acceptedConn) Close() error {
	c.b.mu.Lock()
	delete(c.b.conns, c)
	c.b.mu.Unlock()
	return c.TCPConn.Close()
}
