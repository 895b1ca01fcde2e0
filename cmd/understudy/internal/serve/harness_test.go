package serve

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/understudy-lb/understudy/internal/testing/testleak"
)

func TestMain(m *testing.M) {
	flag.Set("test.parallel", "8") // the tests mostly wait
	// A watch of Kubernetes goes on for half a minute after its last user; the tests of the source
	// check that it ends.
	testleak.Main(m, goleak.IgnoreAnyFunction("github.com/understudy-lb/understudy/discovery/kubernetes.(*watch).run"))
}

const testTimeout = 30 * time.Second

type logRecorder struct {
	mu    sync.Mutex
	lines []map[string]any
	added chan struct{}
}

func newLogs() *logRecorder { return &logRecorder{added: make(chan struct{}, 1)} }

func (l *logRecorder) Write(line []byte) (int, error) {
	var fields map[string]any
	if err := json.Unmarshal(bytes.TrimSpace(line), &fields); err != nil {
		panic(err)
	}
	l.mu.Lock()
	l.lines = append(l.lines, fields)
	l.mu.Unlock()
	select {
	case l.added <- struct{}{}:
	default:
	}
	return len(line), nil
}

func (l *logRecorder) wait(t *testing.T, msg string) map[string]any {
	t.Helper()
	deadline := time.After(testTimeout)
	for {
		l.mu.Lock()
		for i, line := range l.lines {
			if line["msg"] == msg {
				l.lines = l.lines[i+1:]
				l.mu.Unlock()
				return line
			}
		}
		l.mu.Unlock()
		select {
		case <-l.added:
		case <-deadline:
			t.Fatalf("%q was not logged within %v; was: %v", msg, testTimeout, l.lines)
		}
	}
}

// endpoints returns the content of a file with one locality, whose endpoints are on 127.0.0.1 at
// the given ports.
func endpoints(ports ...string) string {
	var b strings.Builder
	b.WriteString("endpoints:\n- lbEndpoints:\n")
	for _, port := range ports {
		b.WriteString("  - endpoint: {address: {socketAddress: {address: 127.0.0.1, portValue: " + port + "}}}\n")
	}
	return b.String()
}

// write replaces the file in one step, so that no reader sees half of it.
func write(t *testing.T, path, text string) {
	t.Helper()
	temporary := filepath.Join(filepath.Dir(path), ".new")
	must(t, os.WriteFile(temporary, []byte(text), 0o600))
	must(t, os.Rename(temporary, path))
}

func remove(t *testing.T, path string) {
	t.Helper()
	must(t, os.RemoveAll(path))
}

func rename(t *testing.T, from, to string) {
	t.Helper()
	must(t, os.Rename(from, to))
}

func symlink(t *testing.T, target, path string) {
	t.Helper()
	must(t, os.Symlink(target, path+".new"))
	rename(t, path+".new", path)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func makeDir(t *testing.T, path string, files ...string) string {
	t.Helper()
	must(t, os.MkdirAll(path, 0o700))
	for _, name := range files {
		write(t, filepath.Join(path, name), endpoints("1"))
	}
	return path
}

func start(t *testing.T, o Options) (*Server, *logRecorder) {
	t.Helper()
	l := newLogs()
	o.Log = slog.New(slog.NewJSONHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug}))
	o.Listen = "127.0.0.1:0"
	o.responseTimeout = cmp.Or(o.responseTimeout, oneHour) // on a slow machine, the streams of a test must not time out
	s, err := Start(context.Background(), o)
	must(t, err)
	t.Cleanup(s.Stop)
	return s, l
}

type adsStream = discoveryv3.AggregatedDiscoveryService_StreamAggregatedResourcesClient

func openStream(t *testing.T, s *Server, creds credentials.TransportCredentials) adsStream {
	t.Helper()
	if creds == nil {
		creds = insecure.NewCredentials()
	}
	conn, err := grpc.NewClient(s.Addr().String(), grpc.WithTransportCredentials(creds))
	must(t, err)
	ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
	t.Cleanup(func() {
		cancel()
		conn.Close()
	})
	stream, err := discoveryv3.NewAggregatedDiscoveryServiceClient(conn).StreamAggregatedResources(ctx)
	must(t, err)
	return stream
}

func send(t *testing.T, stream adsStream, r *discoveryv3.DiscoveryRequest) {
	t.Helper()
	must(t, stream.Send(r))
}

func receive(t *testing.T, stream adsStream) *discoveryv3.DiscoveryResponse {
	t.Helper()
	r, err := stream.Recv()
	must(t, err)
	return r
}

const secretType = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret"

func newTestClients(log *slog.Logger) *clients {
	return newClients(log, newMetrics(func() float64 { return 0 }), DefaultMaxNames)
}
