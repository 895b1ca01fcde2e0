package kubernetes_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/understudy-lb/understudy"
	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/discovery/kubernetes"
)

const testTimeout = 30 * time.Second

type apiServer struct {
	*httptest.Server
	requests chan *http.Request
	lines    chan string // lines of responses; "" ends a response, and a number is its status code
	watches  atomic.Int32
}

func newAPIServer(t *testing.T) *apiServer {
	s := &apiServer{requests: make(chan *http.Request, 100), lines: make(chan string, 100)}
	s.Server = httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(func() { _ = s.Config.Close(); s.Close() })
	return s
}

func (s *apiServer) serve(w http.ResponseWriter, r *http.Request) {
	s.watches.Add(1)
	s.requests <- r
	for {
		select {
		case <-r.Context().Done():
			return
		case line := <-s.lines:
			if line == "" {
				return
			}
			var code int
			if n, _ := fmt.Sscanf(line, "%d", &code); n == 1 {
				w.WriteHeader(code)
				_, _ = fmt.Fprint(w, `{"kind":"Status","message":"User \"x\" cannot list"}`)
				return
			}
			_, _ = fmt.Fprintln(w, line)
			w.(http.Flusher).Flush()
		}
	}
}

func (s *apiServer) next(t *testing.T) *http.Request {
	t.Helper()
	select {
	case r := <-s.requests:
		return r
	case <-time.After(testTimeout):
		t.Fatal("timed out waiting for a request")
		return nil
	}
}

const initialEnd = `{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"7","annotations":{"k8s.io/initial-events-end":"true"}}}}`

func sliceEvent(kind, name, address string) string {
	host, port, _ := net.SplitHostPort(address)
	return fmt.Sprintf(`{"type":%q,"object":{"metadata":{"name":%q,"resourceVersion":"8","labels":{"kubernetes.io/service-name":"web"}},`+
		`"addressType":"IPv4","endpoints":[{"addresses":[%q]}],"ports":[{"name":"grpc","port":%s}]}}`, kind, name, host, port)
}

func backend(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer()
	healthpb.RegisterHealthServer(s, health.NewServer())
	go func() { _ = s.Serve(l) }()
	t.Cleanup(s.Stop)
	return l.Addr().String()
}

func client(t *testing.T, s *apiServer, rt http.RoundTripper) healthpb.HealthClient {
	cc, err := understudy.NewClient("kubernetes:///web.shop:grpc",
		understudy.Options{Sources: []discovery.SourceOption{kubernetes.WithTransport(s.URL, rt)}},
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cc.Close() })
	return healthpb.NewHealthClient(cc)
}

func call(t *testing.T, c healthpb.HealthClient, options ...grpc.CallOption) error {
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	_, err := c.Check(ctx, &healthpb.HealthCheckRequest{}, options...)
	return err
}

func TestChannelsShareResumedWatch(t *testing.T) {
	t.Parallel()
	s, rt := newAPIServer(t), &http.Transport{}
	s.lines <- sliceEvent("ADDED", "a", backend(t))
	s.lines <- initialEnd
	for range 20 {
		if err := call(t, client(t, s, rt), grpc.WaitForReady(true)); err != nil {
			t.Fatal(err)
		}
	}
	q := s.next(t).URL.Query()
	if n := s.watches.Load(); n != 1 || q.Get("sendInitialEvents") != "true" || !strings.Contains(q.Get("labelSelector"), "(web)") {
		t.Errorf("%d watches, with %v", n, q)
	}
	s.lines <- ""
	if v := s.next(t).URL.Query().Get("resourceVersion"); v != "7" {
		t.Errorf("it is resumed from %q, want 7", v)
	}
	s.lines <- `{"type":"ERROR","object":{"code":410,"message":"too old"}}`
	if q := s.next(t).URL.Query(); q.Get("sendInitialEvents") != "true" || q.Has("resourceVersion") {
		t.Errorf("after 410 the request is %v, want one for all slices", q)
	}
}
