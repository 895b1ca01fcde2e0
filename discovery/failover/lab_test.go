package failover_test

import (
	"context"
	"crypto/tls"
	"net"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/testing/testcert"
)

// certAuthority creates the credentials of servers, and of clients that trust them.
type certAuthority struct{ *testcert.Authority }

func newCertAuthority(t *testing.T) certAuthority { return certAuthority{testcert.New(t)} }

func (a certAuthority) server(t *testing.T, names ...string) credentials.TransportCredentials {
	t.Helper()
	certificate := a.Pair("server", names...).Load(t)
	return credentials.NewServerTLSFromCert(&certificate)
}

func (a certAuthority) client() credentials.TransportCredentials {
	return credentials.NewTLS(&tls.Config{RootCAs: a.Pool()})
}

// testServer is a server on a loopback address. A response header contains the server's name and
// the call's :authority.
type testServer struct {
	name    string
	creds   credentials.TransportCredentials
	address string
	server  *grpc.Server
}

func startServer(t *testing.T, name string, creds credentials.TransportCredentials) *testServer {
	t.Helper()
	s := &testServer{name: name, creds: creds, address: "127.0.0.1:0"}
	s.start(t)
	t.Cleanup(func() { s.server.Stop() })
	return s
}

func (s *testServer) start(t *testing.T) {
	t.Helper()
	listener, err := net.Listen("tcp", s.address)
	if err != nil {
		t.Fatal(err)
	}
	s.address = listener.Addr().String()
	s.server = grpc.NewServer(grpc.Creds(s.creds), grpc.UnaryInterceptor(s.intercept))
	healthpb.RegisterHealthServer(s.server, health.NewServer())
	server := s.server
	go server.Serve(listener)
}

func (s *testServer) intercept(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	incoming, _ := metadata.FromIncomingContext(ctx)
	callAuthority := append(incoming.Get(":authority"), "none")[0]
	if err := grpc.SetHeader(ctx, metadata.Pairs("tier", s.name, "called", callAuthority)); err != nil {
		return nil, err
	}
	return handler(ctx, req)
}

func call(ctx context.Context, conn *grpc.ClientConn, opts ...grpc.CallOption) (string, error) {
	var header metadata.MD
	opts = append(opts, grpc.Header(&header))
	if _, err := healthpb.NewHealthClient(conn).Check(ctx, &healthpb.HealthCheckRequest{}, opts...); err != nil {
		return "", err
	}
	return header.Get("tier")[0] + " as " + header.Get("called")[0], nil
}

func await(t *testing.T, conn *grpc.ClientConn, want string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for {
		got, err := call(ctx, conn, grpc.WaitForReady(true))
		if got == want {
			return
		}
		if ctx.Err() != nil {
			t.Fatalf("calls are answered by %q (%v), want %q", got, err, want)
		}
	}
}

func dial(t *testing.T, target string, opts ...grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(target, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

var plaintext = grpc.WithTransportCredentials(insecure.NewCredentials())

type fakeDNS struct {
	mu        sync.Mutex
	addresses map[string][]string
	failures  map[string]error
	watchers  map[*fakeDNSResolver]bool
}

type fakeDNSResolver struct {
	fakeDNS *fakeDNS
	name    string
	cc      resolver.ClientConn
}

func newFakeDNS() *fakeDNS {
	return &fakeDNS{addresses: make(map[string][]string), failures: make(map[string]error), watchers: make(map[*fakeDNSResolver]bool)}
}

func (n *fakeDNS) set(name string, failure error, addresses ...string) {
	n.mu.Lock()
	n.addresses[name], n.failures[name] = addresses, failure
	var affected []*fakeDNSResolver
	for w := range n.watchers {
		if w.name == name {
			affected = append(affected, w)
		}
	}
	n.mu.Unlock()
	for _, w := range affected {
		w.ResolveNow(resolver.ResolveNowOptions{})
	}
}

func (*fakeDNS) Scheme() string { return "lab" }

func (n *fakeDNS) Build(target resolver.Target, cc resolver.ClientConn, _ resolver.BuildOptions) (resolver.Resolver, error) {
	w := &fakeDNSResolver{n, target.Endpoint(), cc}
	n.mu.Lock()
	n.watchers[w] = true
	n.mu.Unlock()
	w.ResolveNow(resolver.ResolveNowOptions{})
	return w, nil
}

func (w *fakeDNSResolver) ResolveNow(resolver.ResolveNowOptions) {
	w.fakeDNS.mu.Lock()
	addresses, exists := w.fakeDNS.addresses[w.name]
	failure := w.fakeDNS.failures[w.name]
	w.fakeDNS.mu.Unlock()
	if failure != nil {
		w.cc.ReportError(failure)
		return
	}
	if !exists {
		return
	}
	state := resolver.State{Endpoints: []resolver.Endpoint{}}
	for _, a := range addresses {
		state.Endpoints = append(state.Endpoints, resolver.Endpoint{Addresses: []resolver.Address{{Addr: a}}})
	}
	_ = w.cc.UpdateState(state)
}

func (w *fakeDNSResolver) Close() {
	w.fakeDNS.mu.Lock()
	defer w.fakeDNS.mu.Unlock()
	delete(w.fakeDNS.watchers, w)
}
