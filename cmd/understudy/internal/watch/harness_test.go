package watch

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
)

func TestMain(m *testing.M) {
	time.Local = time.UTC // the golden files contain times in UTC
	os.Exit(m.Run())
}

type backend struct {
	t       *testing.T
	address string
	options []grpc.ServerOption
	server  *grpc.Server
}

func newBackend(t *testing.T, options ...grpc.ServerOption) *backend {
	t.Helper()
	b := &backend{t: t, address: "127.0.0.1:0", options: options}
	b.start()
	t.Cleanup(func() { b.server.Stop() })
	return b
}

func (b *backend) start() {
	b.t.Helper()
	listener, err := net.Listen("tcp", b.address)
	if err != nil {
		b.t.Fatal(err)
	}
	b.address = listener.Addr().String()
	b.server = grpc.NewServer(b.options...)
	healthpb.RegisterHealthServer(b.server, health.NewServer())
	go b.server.Serve(listener)
}

// notifyCalls returns a server option that makes the server send a value to called at each call.
func notifyCalls(called chan<- bool) grpc.ServerOption {
	return grpc.UnaryInterceptor(func(ctx context.Context, request any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
		called <- true
		return handle(ctx, request)
	})
}

type watchRun struct {
	t      *testing.T
	lines  chan string
	quit   context.CancelFunc
	result chan error

	skipped []string
}

func startWatch(t *testing.T, o Options) *watchRun {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	read, write := io.Pipe()
	o.Out = write
	if o.Timeout == 0 {
		o.Timeout = time.Minute
	}
	r := &watchRun{t: t, lines: make(chan string, 10_000), quit: cancel, result: make(chan error, 1)}
	go func() {
		r.result <- Run(ctx, o)
		write.Close()
	}()
	go func() {
		defer close(r.lines)
		for in := bufio.NewReader(read); ; {
			line, err := in.ReadString('\n')
			if err != nil {
				return
			}
			r.lines <- strings.TrimSuffix(line, "\n")
		}
	}()
	t.Cleanup(cancel)
	return r
}

func (r *watchRun) await(text string) string {
	r.t.Helper()
	timeout := time.After(time.Minute)
	var before []string
	for {
		select {
		case line, open := <-r.lines:
			if !open {
				r.t.Fatalf("the watch ended with %v without %q, after\n%s", <-r.result, text, strings.Join(before, "\n"))
			}
			if strings.Contains(line, text) {
				return line
			}
			before = append(before, line)
			r.skipped = append(r.skipped, line)
		case <-timeout:
			r.t.Fatalf("no line has %q; there were\n%s", text, strings.Join(before, "\n"))
		}
	}
}

// findEvent returns an event of the given kind whose text contains text. It first looks at the
// events that await has skipped, and then waits for new events.
func (r *watchRun) findEvent(kind, text string) Event {
	r.t.Helper()
	for _, line := range r.skipped {
		var e Event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			r.t.Fatal(err)
		}
		if e.Kind == kind && strings.Contains(e.Text, text) {
			return e
		}
	}
	return r.awaitEvent(kind, text)
}

func (r *watchRun) awaitEvent(kind, text string) Event {
	r.t.Helper()
	for {
		var e Event
		if err := json.Unmarshal([]byte(r.await(`"kind":"`+kind+`"`)), &e); err != nil {
			r.t.Fatal(err)
		}
		if strings.Contains(e.Text, text) {
			return e
		}
	}
}

func (r *watchRun) end() error {
	r.t.Helper()
	r.quit()
	for range r.lines { // drain the output, so that no writer blocks
	}
	return <-r.result
}

// golden compares got with a file in testdata. If UPDATE_GOLDEN is set, it first overwrites the
// file with got.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(file, got, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s: printed\n%s\nwant\n%s", name, got, want)
	}
}
