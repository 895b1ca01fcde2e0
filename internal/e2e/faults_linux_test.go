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

	"github.com/understudy-lb/understudy/internal/testing/given"
	"github.com/understudy-lb/understudy/internal/testing/testcert"
)

// failoverTimeout is that of Recommended.
const failoverTimeout = 2 * time.Second

// silence is how long a priority may answer no call before calls go to the next one.
const silence = 500 * time.Millisecond

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
	s, listener, err := newServer(name, given.Address(t), insecure.NewCredentials())
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
	s.latency = workTime
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
	process, stdout := startSelf(t, "backend", latencyVariable+"="+workTime.String())
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
	// start returns the address of an endpoint, and a function that breaks the endpoint. The function
	// is nil if the endpoint never answers.
	start func(t *testing.T) (address string, breakEndpoint func())
	// minTime is the minimum time until the next priority answers.
	minTime time.Duration
	// deadline is the deadline of calls; 0 selects the one in the README.
	deadline time.Duration
	// maxLost and maxLostSlow limit how many calls to methods in RetryMethods may fail: maxLost with
	// 20 calls per second, and maxLostSlow with one call per second. -1 means no limit.
	maxLost, maxLostSlow int
	// ejected is set if outlier detection ejects the endpoints. Of the calls that begin after five
	// failures of each endpoint, only probes may then fail.
	ejected bool
}

func startAndBreak(breakServer func(*server)) func(*testing.T) (string, func()) {
	return func(t *testing.T) (string, func()) {
		s, listener, err := newServer("near", given.Address(t), insecure.NewCredentials())
		if err != nil {
			t.Fatal(err)
		}
		s.latency = workTime
		go s.grpc.Serve(listener)
		t.Cleanup(s.grpc.Stop)
		return s.address, func() { breakServer(s) }
	}
}

func startAndFail(code codes.Code) func(*testing.T) (string, func()) {
	return startAndBreak(func(s *server) {
		s.err = status.Error(code, "broken")
		s.failures.Store(1 << 40)
	})
}

func startAndSignal(s os.Signal) func(*testing.T) (string, func()) {
	return func(t *testing.T) (string, func()) {
		process, address := startProcess(t)
		return address, func() { process(s.(syscall.Signal)) }
	}
}

var faults = []fault{
	{name: "refused from the start", start: func(t *testing.T) (string, func()) { return given.Address(t), nil }},
	{name: "TLS handshake fails", start: func(t *testing.T) (string, func()) {
		certificate := testcert.New(t).Pair("stranger", "stranger.example.com").Load(t)
		return startServer(t, "near", &certificate).address, nil
	}},
	{name: "process killed", start: startAndSignal(syscall.SIGKILL)},
	{name: "all connections reset, including new ones", start: func(t *testing.T) (string, func()) {
		s, listener, err := newServer("near", given.Address(t), insecure.NewCredentials())
		if err != nil {
			t.Fatal(err)
		}
		s.latency = workTime
		r := &resettable{Listener: listener}
		go s.grpc.Serve(r)
		t.Cleanup(s.grpc.Stop)
		return s.address, r.reset
	}},
	{name: "GOAWAY: `GracefulStop`", start: startAndBreak(func(s *server) { go s.grpc.GracefulStop() })},
	{name: "health check says NOT_SERVING", start: startAndBreak(func(s *server) { s.health.SetServingStatus("", healthgrpc.HealthCheckResponse_NOT_SERVING) })},
	{name: "all calls answered with UNAVAILABLE", start: startAndFail(codes.Unavailable), maxLostSlow: 2, ejected: true},
	{name: "all calls answered with INTERNAL", start: startAndFail(codes.Internal), maxLost: 12, maxLostSlow: 5, ejected: true},
	{name: "attempts to connect hang", minTime: failoverTimeout, start: func(t *testing.T) (string, func()) {
		s, listener := startCuttable(t, "near")
		listener.cut(t)
		return s.address, nil
	}},
	// A stopped process keeps its connections until keepalive closes them. The kernel still accepts
	// connections for it, so attempts to reconnect hang.
	{name: "hung: the process is stopped", start: startAndSignal(syscall.SIGSTOP), minTime: silence, maxLost: -1, maxLostSlow: -1},
	{name: "hung, and calls have deadlines of 1 s", start: startAndSignal(syscall.SIGSTOP), deadline: time.Second, minTime: silence, maxLost: -1, maxLostSlow: -1, ejected: true},
	{name: "cut off: all packets are lost (Linux)", minTime: silence, maxLost: -1, start: func(t *testing.T) (string, func()) {
		s, listener := startCuttable(t, "near")
		return s.address, func() { listener.cut(t) }
	}},
	{name: "cut off, and calls have deadlines of 1 s", deadline: time.Second, minTime: silence, maxLost: -1, maxLostSlow: -1, ejected: true, start: func(t *testing.T) (string, func()) {
		s, listener := startCuttable(t, "near")
		return s.address, func() { listener.cut(t) }
	}},
}
