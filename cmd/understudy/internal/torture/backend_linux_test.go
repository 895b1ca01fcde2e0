//go:build torture

package torture

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health"
	healthgrpc "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/understudy-lb/understudy"
)

type backendConfig struct{ Address string }

// The modes of a backend. They change what it does with connections, packets or calls.
const (
	modeServe      = "serve"
	modeRefuse     = "refuse"  // closes its listener, keeps its connections
	modeSilent     = "silent"  // resets its connections; accepts new ones but sends nothing
	modeGarbage    = "garbage" // like modeSilent, but sends bytes that are not HTTP/2
	modeCrash      = "crash"   // resets connections a few milliseconds after it has accepted them
	modeReset      = "reset"   // resets its connections once
	modeGoaway     = "goaway"  // ends its connections with GOAWAY once
	modeCut        = "cut"     // receives no packets
	modeLossy      = "lossy"   // receives 7 of 10 packets
	modeErrors     = "errors"
	modeUnavail    = "unavail"
	modeHang       = "hang"       // does not answer
	modeNotServing = "notserving" // fails its health checks
)

type backend struct {
	address string

	mu       sync.Mutex
	mode     string
	listener net.Listener
	conns    map[*net.TCPConn]bool
	server   *grpc.Server
	queue    *connQueue
	callMode atomic.Value // the mode of calls, a string
}

func runBackend() error {
	var config backendConfig
	if err := readConfig(&config); err != nil {
		return err
	}
	b := &backend{address: config.Address, mode: modeServe, conns: make(map[*net.TCPConn]bool)}
	b.callMode.Store(modeServe)
	b.newServer()
	if err := b.listen(); err != nil {
		return err
	}
	return readCommands(b.setMode)
}

// listen disables multipath TCP, which is Go's default, because socket filters do not work with it.
func (b *backend) listen() error {
	var config net.ListenConfig
	config.SetMultipathTCP(false)
	listener, err := config.Listen(context.Background(), "tcp", b.address)
	if err != nil {
		return err
	}
	b.listener = listener
	go b.accept(listener)
	return nil
}

func (b *backend) setMode(mode string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.callMode.Store(mode)
	state := healthgrpc.HealthCheckResponse_SERVING
	if mode == modeNotServing {
		state = healthgrpc.HealthCheckResponse_NOT_SERVING
	}
	b.queue.health.SetServingStatus("", state)
	before := b.mode
	b.mode = mode
	switch mode {
	case modeServe:
		if before == modeRefuse {
			return b.listen()
		}
		if before == modeSilent {
			b.resetConns() // like the restart of a program that hung when it started
		}
		return b.filter(filterNone)
	case modeRefuse:
		return b.listener.Close()
	case modeSilent, modeGarbage, modeCrash, modeReset:
		b.resetConns()
		if mode == modeReset {
			b.mode = modeServe
		}
	case modeGoaway:
		server, oldQueue := b.server, b.queue
		b.newServer()
		go func() {
			server.GracefulStop()
			oldQueue.Close()
		}()
		b.mode = modeServe
	case modeCut:
		return b.filter(filterAll)
	case modeLossy:
		return b.filter(filterRandom)
	}
	return nil
}

func (b *backend) resetConns() {
	for conn := range b.conns {
		conn.SetLinger(0)
		conn.Close()
	}
	clear(b.conns)
}

func (b *backend) accept(listener net.Listener) {
	for {
		conn, err := listener.Accept()
		if errors.Is(err, syscall.EMFILE) {
			<-time.NewTimer(50 * time.Millisecond).C
			continue
		}
		if err != nil {
			return
		}
		b.handleConn(conn.(*net.TCPConn))
	}
}

func (b *backend) handleConn(conn *net.TCPConn) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.conns[conn] = true
	switch b.mode {
	case modeSilent:
	case modeGarbage:
		conn.Write([]byte("220 mail.example.com ESMTP\r\n\x00\xff\x00"))
		conn.Close()
		delete(b.conns, conn)
	case modeCrash:
		b.queue.push(conn)
		time.AfterFunc(20*time.Millisecond, func() {
			b.mu.Lock()
			defer b.mu.Unlock()
			conn.SetLinger(0)
			conn.Close()
			delete(b.conns, conn)
		})
	default:
		b.queue.push(conn)
	}
}

var (
	filterNone   = []syscall.SockFilter(nil)
	filterAll    = []syscall.SockFilter{{Code: syscall.BPF_RET | syscall.BPF_K, K: 0}}
	filterRandom = []syscall.SockFilter{
		{Code: syscall.BPF_LD | syscall.BPF_W | syscall.BPF_ABS, K: 0xfffff000 + 56}, // SKF_AD_OFF + SKF_AD_RANDOM
		{Code: syscall.BPF_JMP | syscall.BPF_JGE | syscall.BPF_K, K: 1288490188, Jt: 0, Jf: 1},
		{Code: syscall.BPF_RET | syscall.BPF_K, K: 1 << 18},
		{Code: syscall.BPF_RET | syscall.BPF_K, K: 0},
	}
)

// filter attaches a filter to the listener and all connections, or detaches it. Connections inherit
// the filter of their listener.
func (b *backend) filter(filter []syscall.SockFilter) error {
	apply := func(conn syscall.Conn) error {
		raw, err := conn.SyscallConn()
		if err != nil {
			return err
		}
		var filterErr error
		err = raw.Control(func(fd uintptr) {
			if filter == nil {
				syscall.DetachLsf(int(fd))
				return
			}
			filterErr = syscall.AttachLsf(int(fd), filter)
		})
		return errors.Join(err, filterErr)
	}
	for conn := range b.conns {
		if err := apply(conn); errors.Is(err, net.ErrClosed) {
			delete(b.conns, conn)
		} else if err != nil {
			return err
		}
	}
	return apply(b.listener.(*net.TCPListener))
}

type connQueue struct {
	health *health.Server
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (f *connQueue) push(conn net.Conn) {
	select {
	case f.conns <- conn:
	case <-f.closed:
		conn.Close()
	}
}

func (f *connQueue) Accept() (net.Conn, error) {
	select {
	case conn := <-f.conns:
		return conn, nil
	case <-f.closed:
		return nil, net.ErrClosed
	}
}

func (f *connQueue) Close() error {
	f.once.Do(func() { close(f.closed) })
	return nil
}

func (f *connQueue) Addr() net.Addr { return &net.TCPAddr{} }

func (b *backend) newServer() {
	b.server = grpc.NewServer(understudy.Recommended().ServerKeepalive())
	b.queue = &connQueue{health: health.NewServer(), conns: make(chan net.Conn, 100), closed: make(chan struct{})}
	healthgrpc.RegisterHealthServer(b.server, b.queue.health)
	b.server.RegisterService(&serviceDesc, b)
	go b.server.Serve(b.queue)
}

const (
	serviceName  = "understudy.torture.v1.Torture"
	unaryMethod  = "/" + serviceName + "/Unary"
	streamMethod = "/" + serviceName + "/Stream"
)

var serviceDesc = grpc.ServiceDesc{
	ServiceName: serviceName,
	HandlerType: (*any)(nil),
	Methods: []grpc.MethodDesc{{
		MethodName: "Unary",
		Handler: func(srv any, ctx context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
			var delay durationpb.Duration
			if err := decode(&delay); err != nil {
				return nil, err
			}
			return srv.(*backend).answer(ctx, delay.AsDuration())
		},
	}},
	Streams: []grpc.StreamDesc{{
		StreamName: "Stream", ServerStreams: true, ClientStreams: true,
		Handler: func(srv any, stream grpc.ServerStream) error { return srv.(*backend).echo(stream) },
	}},
}

// answer returns the response to a call, which is the address of the backend. The client chooses
// the delay of the response.
func (b *backend) answer(ctx context.Context, delay time.Duration) (*wrapperspb.StringValue, error) {
	switch b.callMode.Load() {
	case modeErrors:
		return nil, status.Error(codes.Internal, "the backend is broken")
	case modeUnavail:
		return nil, status.Error(codes.Unavailable, "the backend is broken")
	case modeHang:
		<-ctx.Done()
		return nil, ctx.Err()
	}
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
		return wrapperspb.String(b.address), nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (b *backend) echo(stream grpc.ServerStream) error {
	for {
		var delay durationpb.Duration
		if err := stream.RecvMsg(&delay); err != nil {
			return nil //nolint:nilerr // the client has ended the stream
		}
		answer, err := b.answer(stream.Context(), delay.AsDuration())
		if err != nil {
			return err
		}
		if err := stream.SendMsg(answer); err != nil {
			return err
		}
	}
}

func host(priority, n int) string { return fmt.Sprintf("127.1.%d.%d", priority, n+1) }

func withPort(port int, hosts ...string) (all []string) {
	for _, h := range hosts {
		all = append(all, net.JoinHostPort(h, strconv.Itoa(port)))
	}
	return all
}

func withoutPort(address string) string {
	h, _, _ := strings.Cut(address, ":")
	return h
}
