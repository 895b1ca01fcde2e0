package e2e

import (
	"context"
	"crypto/tls"
	"net"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	healthgrpc "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/understudy-lb/understudy/internal/testing/testcert"
)

// failoverTimeout is A56's, which the README's client leaves at its default.
const failoverTimeout = 10 * time.Second

// cuttable is a listener that can be cut off, with all its connections: no packet
// reaches them any more, as if the machine had lost its power.
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

// cut gives all sockets a filter that drops every packet.
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

// startCuttable starts a backend that can be cut off.
func startCuttable(t *testing.T, name string) (*server, *cuttable) {
	t.Helper()
	s, listener, err := newServer(name, "127.0.0.1:0", insecure.NewCredentials())
	if err != nil {
		t.Fatal(err)
	}
	// Sockets of Multipath TCP, which is the default, take no filters.
	listener.Close()
	var config net.ListenConfig
	config.SetMultipathTCP(false)
	if listener, err = config.Listen(t.Context(), "tcp", s.address); err != nil {
		t.Fatal(err)
	}
	c := &cuttable{TCPListener: listener.(*net.TCPListener)}
	go s.grpc.Serve(c)
	t.Cleanup(s.grpc.Stop)
	return s, c
}

// traffic is calls by the README's client, twenty a second.
type traffic struct {
	example example
	calls   sync.WaitGroup
	mu      sync.Mutex
	lost    []error
	total   int
	first   map[string]time.Time // of an answer, by backend
}

// until calls until name has answered. Then it returns when all calls have ended.
func (tr *traffic) until(ctx context.Context, t *testing.T, cc *grpc.ClientConn, name string) {
	t.Helper()
	tr.first = make(map[string]time.Time)
	answered := make(chan struct{})
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for done := false; !done; {
		tr.total++
		tr.calls.Go(func() { tr.call(cc, name, answered) })
		select {
		case <-tick.C:
		case <-answered:
			done = true
		case <-ctx.Done():
			t.Fatalf("no answer of %s", name)
		}
	}
	tr.calls.Wait()
}

func (tr *traffic) call(cc *grpc.ClientConn, name string, answered chan struct{}) {
	ctx, cancel := context.WithTimeout(context.Background(), tr.example.deadline)
	defer cancel()
	got, err := who(ctx, cc)
	tr.mu.Lock()
	defer tr.mu.Unlock()
	if err != nil {
		tr.lost = append(tr.lost, err)
		return
	}
	if tr.first[got.name].IsZero() {
		tr.first[got.name] = time.Now()
		if got.name == name {
			close(answered)
		}
	}
}

// start is one way in which a priority is lost.
type start struct {
	name string
	// lose returns the address of a priority, and a function that loses it, once it
	// has answered; nil where it never answers.
	lose func(t *testing.T) (address string, lose func())
	// after is when the next priority answers, give or take a second.
	after func(example) time.Duration
}

func atOnce(example) time.Duration { return 0 }

var starts = []start{
	{"refused", func(t *testing.T) (string, func()) {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		listener.Close()
		return listener.Addr().String(), nil
	}, atOnce},
	{"TLS handshake fails", func(t *testing.T) (string, func()) {
		certificate := testcert.New(t).Pair("stranger", "stranger.example.com").Load(t)
		return startServer(t, "first", &certificate).address, nil
	}, atOnce},
	{"process killed", func(t *testing.T) (string, func()) {
		process, address := startProcess(t)
		return address, func() { process(syscall.SIGKILL) }
	}, atOnce},
	{"NOT_SERVING", func(t *testing.T) (string, func()) {
		s := startServer(t, "process", nil)
		return s.address, func() { s.health.SetServingStatus("", healthgrpc.HealthCheckResponse_NOT_SERVING) }
	}, atOnce},
	{"attempts hang", func(t *testing.T) (string, func()) {
		s, listener := startCuttable(t, "process")
		listener.cut(t)
		return s.address, nil
	}, func(example) time.Duration { return failoverTimeout }},
	// A stopped process keeps its connections, so that only keepalive tells; and the
	// kernel accepts new ones for it, so that the attempt to connect again hangs.
	{"hung", func(t *testing.T) (string, func()) {
		process, address := startProcess(t)
		return address, func() { process(syscall.SIGSTOP) }
	}, func(e example) time.Duration { return e.keepalive.Time + e.keepalive.Timeout + failoverTimeout }},
	{"cut off under traffic", func(t *testing.T) (string, func()) {
		s, listener := startCuttable(t, "process")
		return s.address, func() { listener.cut(t) }
	}, func(e example) time.Duration { return e.keepalive.Timeout + failoverTimeout }},
}

// startProcess starts a backend in a process of its own, and returns a function that
// sends it a signal.
func startProcess(t *testing.T) (signal func(syscall.Signal), address string) {
	t.Helper()
	process, stdout := startSelf(t, "backend")
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

// Each row of the README's table "What starts a failover", with the README's client,
// under traffic: no call is lost in any of them.
func TestWhatStartsAFailover(t *testing.T) {
	t.Parallel()
	e := readExample(t)
	for _, s := range starts {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			creds, certificate := insecure.NewCredentials(), (*tls.Certificate)(nil)
			if strings.HasPrefix(s.name, "TLS") {
				ca := testcert.New(t)
				pair := ca.Pair("shop", "shop.example.com").Load(t)
				creds, certificate = credentials.NewTLS(&tls.Config{RootCAs: ca.Pool()}), &pair
			}
			second := startServer(t, "second", certificate)
			address, lose := s.lose(t)
			cc := e.dial(t, creds, address, second.address)
			if lose != nil {
				awaitName(deadline(t, 10*time.Second), t, cc, "process")
				lose()
			}
			tr := traffic{example: e}
			lost, want := time.Now(), s.after(e)
			tr.until(deadline(t, want+10*time.Second), t, cc, "second")
			took := tr.first["second"].Sub(lost)
			t.Logf("%s: the next priority answered after %v; %d calls, %d lost", s.name, took.Round(time.Millisecond), tr.total, len(tr.lost))
			if took < want-time.Second || took > want+3*time.Second {
				t.Errorf("the next priority answered after %v, want about %v", took, want)
			}
			if len(tr.lost) > 0 {
				t.Errorf("%d of %d calls were lost, the first with %v", len(tr.lost), tr.total, tr.lost[0])
			}
		})
	}
}

// A backend that answers every call with UNAVAILABLE is not flooded by retries.
func TestRetriesAreThrottled(t *testing.T) {
	t.Parallel()
	e := readExample(t)
	first := startServer(t, "first", nil)
	cc := e.dial(t, insecure.NewCredentials(), first.address)
	awaitName(deadline(t, 10*time.Second), t, cc, "first")
	const enough, calls = 1 << 30, 5000
	first.err = status.Error(codes.Unavailable, "overloaded")
	first.failures.Store(enough)
	var all sync.WaitGroup
	for range calls {
		all.Go(func() {
			if _, err := who(deadline(t, e.deadline), cc); status.Code(err) != codes.Unavailable {
				t.Errorf("error = %v, want the backend's", err)
			}
		})
	}
	all.Wait()
	attempts := float64(enough-first.failures.Load()) / calls
	t.Logf("%.2f attempts a call", attempts)
	if attempts > 1.3 {
		t.Errorf("%.2f attempts a call, want few repeated", attempts)
	}
}
