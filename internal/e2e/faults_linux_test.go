package e2e

import (
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthgrpc "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/understudy-lb/understudy/internal/testing/testcert"
)

// failoverTimeout is the default of gRFC A56. Recommended does not change it.
const failoverTimeout = 10 * time.Second

// workTime is the duration of a call to the first priority. It is so long that some calls are in
// flight when the priority fails.
const workTime = 100 * time.Millisecond

type cuttable struct {
	*net.TCPListener
	mu    sync.Mutex
	conns []syscall.Conn
}

func (c *cuttable) Accept() (net.Conn, error) {
	conn, err := c.TCPListener.Accept()
	if err == nil {
		c.mu.Lock()
		c.conns = append(c.conns, conn.(*net.TCPConn))
		c.mu.Unlock()
	}
	return conn, err
}

func (c *cuttable) cut(t *testing.T) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, conn := range append(c.conns, c.TCPListener) {
		raw, err := conn.SyscallConn()
		if err != nil {
			t.Fatal(err)
		}
		drop := []syscall.SockFilter{{Code: syscall.BPF_RET | syscall.BPF_K, K: 0}}
		attach := func(fd uintptr) {
			err = syscall.AttachLsf(int(fd), drop)
		}
		if controlErr := raw.Control(attach); controlErr != nil || err != nil {
			t.Fatal(controlErr, err)
		}
	}
}

func startCuttable(t *testing.T, name string) (*server, *cuttable) {
	t.Helper()
	s, listener, err := newServer(name, "127.0.0.1:0", insecure.NewCredentials())
	if err != nil {
		t.Fatal(err)
	}
	// A socket filter drops the packets. Multipath TCP, which Go's listeners use by default, does
	// not support it.
	listener.Close()
	var config net.ListenConfig
	config.SetMultipathTCP(false)
	if listener, err = config.Listen(t.Context(), "tcp", s.address); err != nil {
		t.Fatal(err)
	}
	c := &cuttable{TCPListener: listener.(*net.TCPListener)}
	s.takes = workTime
	go s.grpc.Serve(c)
	t.Cleanup(s.grpc.Stop)
	return s, c
}

type resettable struct {
	net.Listener
	mu     sync.Mutex
	resets bool
	conns  []*net.TCPConn
}

func (r *resettable) Accept() (net.Conn, error) {
	conn, err := r.Listener.Accept()
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.conns = append(r.conns, conn.(*net.TCPConn))
	if r.resets {
		reset(conn.(*net.TCPConn))
	}
	return conn, nil
}

func (r *resettable) reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.resets = true
	for _, conn := range r.conns {
		reset(conn)
	}
}

func reset(conn *net.TCPConn) {
	conn.SetLinger(0)
	conn.Close()
}

func startProcess(t *testing.T) (signal func(syscall.Signal), address string) {
	t.Helper()
	process, stdout := startSelf(t, "backend", takesVariable+"="+workTime.String())
	line, err := stdout.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return func(s syscall.Signal) {
		if err := process.Process.Signal(s); err != nil {
			t.Error(err)
		}
	}, strings.TrimSpace(line)
}

type fault struct {
	name string // the name of the fault in the table of the documentation
	// lose returns the address of an endpoint, and a function that breaks the endpoint. The
	// function is nil if the endpoint never answers.
	lose func(t *testing.T) (address string, lose func())
	// after is the shortest time until the next priority answers.
	after time.Duration
	// deadline is the deadline of calls; 0 selects the one in the README.
	deadline time.Duration
	// most and slowly limit how many calls to methods in RetryMethods may fail: most with 20 calls
	// per second, slowly with one call per second. -1 means no limit.
	most, slowly int
	// ejected is set if outlier detection ejects the endpoints. Calls that begin after five
	// failures of each endpoint must then succeed.
	ejected bool
}

func serving(then func(*server)) func(*testing.T) (string, func()) {
	return func(t *testing.T) (string, func()) {
		s, listener, err := newServer("near", ownAddress(t), insecure.NewCredentials())
		if err != nil {
			t.Fatal(err)
		}
		s.takes = workTime
		go s.grpc.Serve(listener)
		t.Cleanup(s.grpc.Stop)
		return s.address, func() { then(s) }
	}
}

func answering(code codes.Code) func(*testing.T) (string, func()) {
	return serving(func(s *server) {
		s.err = status.Error(code, "broken")
		s.failures.Store(1 << 40)
	})
}

func signalled(s os.Signal) func(*testing.T) (string, func()) {
	return func(t *testing.T) (string, func()) {
		process, address := startProcess(t)
		return address, func() { process(s.(syscall.Signal)) }
	}
}

var faults = []fault{
	{name: "refused from the start", lose: func(t *testing.T) (string, func()) { return ownAddress(t), nil }},
	{name: "TLS handshake fails", lose: func(t *testing.T) (string, func()) {
		certificate := testcert.New(t).Pair("stranger", "stranger.example.com").Load(t)
		return startServer(t, "near", &certificate).address, nil
	}},
	{name: "process killed", lose: signalled(syscall.SIGKILL)},
	{name: "all connections reset, including new ones", lose: func(t *testing.T) (string, func()) {
		s, listener, err := newServer("near", ownAddress(t), insecure.NewCredentials())
		if err != nil {
			t.Fatal(err)
		}
		s.takes = workTime
		r := &resettable{Listener: listener}
		go s.grpc.Serve(r)
		t.Cleanup(s.grpc.Stop)
		return s.address, r.reset
	}},
	{name: "GOAWAY: `GracefulStop`", lose: serving(func(s *server) { go s.grpc.GracefulStop() })},
	{name: "health check says NOT_SERVING", lose: serving(func(s *server) { s.health.SetServingStatus("", healthgrpc.HealthCheckResponse_NOT_SERVING) })},
	{name: "all calls answered with UNAVAILABLE", lose: answering(codes.Unavailable), slowly: 2, ejected: true},
	{name: "all calls answered with INTERNAL", lose: answering(codes.Internal), most: 10, slowly: 10, ejected: true},
	{name: "attempts to connect hang", after: failoverTimeout, lose: func(t *testing.T) (string, func()) {
		s, listener := startCuttable(t, "near")
		listener.cut(t)
		return s.address, nil
	}},
	// A stopped process keeps its connections, so only keepalive detects the fault. The kernel
	// still accepts connections for it, so attempts to reconnect hang.
	{name: "hung: the process is stopped", lose: signalled(syscall.SIGSTOP), after: 15 * time.Second, most: -1, slowly: -1},
	{name: "hung, and calls have deadlines of 1 s", lose: signalled(syscall.SIGSTOP), deadline: time.Second, after: time.Second, most: -1, slowly: -1, ejected: true},
	{name: "cut off: all packets are lost (Linux)", after: 5 * time.Second, lose: func(t *testing.T) (string, func()) {
		s, listener := startCuttable(t, "near")
		return s.address, func() { listener.cut(t) }
	}},
	{name: "cut off, and calls have deadlines of 1 s", deadline: time.Second, after: time.Second, most: -1, slowly: -1, ejected: true, lose: func(t *testing.T) (string, func()) {
		s, listener := startCuttable(t, "near")
		return s.address, func() { listener.cut(t) }
	}},
}
