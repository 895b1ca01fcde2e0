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

// service is the service of the backends. A call returns the name of the backend's priority.
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

// takes returns the behavior of a backend that answers after the duration d.
func takes(d time.Duration) func(context.Context) error {
	return func(ctx context.Context) error {
		select {
		case <-time.After(d):
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func fails(code codes.Code) func(context.Context) error {
	return func(context.Context) error { return status.Error(code, "a fault of the league") }
}

func hangs(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

// backend is a server of one priority with its own address. Faults change its behavior.
type backend struct {
	priority, address string
	certificate       atomic.Pointer[tls.Certificate] // nil: without TLS
	behavior          atomic.Pointer[func(context.Context) error]

	mu       sync.Mutex
	listener *net.TCPListener
	server   *grpc.Server
	health   *health.Server
	conns    map[*accepted]bool
	lifetime time.Duration // of connections; 0: unlimited
}

func startBackend(priority, address string, certificate *tls.Certificate) (*backend, error) {
	b := &backend{priority: priority, address: address, conns: make(map[*accepted]bool)}
	b.certificate.Store(certificate)
	b.behave(takes(answerAfter))
	return b, b.start()
}

func (b *backend) behave(behavior func(context.Context) error) { b.behavior.Store(&behavior) }

func (b *backend) start() error {
	var config net.ListenConfig
	config.SetMultipathTCP(false) // socket filters do not work with it
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

// kill closes the listener and all connections, like the kernel when a process ends.
func (b *backend) kill() {
	b.mu.Lock()
	server, listener := b.server, b.listener
	b.mu.Unlock()
	server.Stop()
	listener.Close() //nolint:errcheck // the server has closed it, unless it does not serve yet
}

// drain closes the listener. It sends GOAWAY on connections, and closes them after their calls.
func (b *backend) drain() {
	b.mu.Lock()
	defer b.mu.Unlock()
	go b.server.GracefulStop()
}

func (b *backend) stopsServing() {
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

// crash closes all connections, and each new one after the duration lifetime.
func (b *backend) crash(lifetime time.Duration) {
	b.mu.Lock()
	b.lifetime = lifetime
	b.mu.Unlock()
	for _, c := range b.connections() {
		c.Close() //nolint:errcheck // the connection may be closed already
	}
}

// loseArrivals drops all packets that arrive at the listener and its connections.
func (b *backend) loseArrivals() error {
	b.mu.Lock()
	socket, err := b.listener.SyscallConn()
	b.mu.Unlock()
	if err == nil {
		err = dropArrivals(socket)
	}
	for _, c := range b.connections() {
		if socket, closed := c.SyscallConn(); closed == nil {
			dropArrivals(socket) //nolint:errcheck // the connection may be closed already
		}
	}
	return err
}

func (b *backend) connections() (all []*accepted) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for c := range b.conns {
		all = append(all, c)
	}
	return all
}

// listener registers each connection with its backend.
type listener struct {
	*net.TCPListener
	b *backend
}

func (l *listener) Accept() (net.Conn, error) {
	conn, err := l.AcceptTCP()
	if err != nil {
		return nil, err
	}
	c := &accepted{conn, l.b}
	l.b.mu.Lock()
	defer l.b.mu.Unlock()
	l.b.conns[c] = true
	if l.b.lifetime > 0 {
		time.AfterFunc(l.b.lifetime, func() { c.Close() }) //nolint:errcheck // the connection may be closed already
	}
	return c, nil
}

type accepted struct {
	*net.TCPConn
	b *backend
}

func (c *accepted) Close() error {
	c.b.mu.Lock()
	delete(c.b.conns, c)
	c.b.mu.Unlock()
	return c.TCPConn.Close()
}
