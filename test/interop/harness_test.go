package interop

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
)

const timeout = time.Minute

var binary string // path of understudy; stockclient is in the same directory

func TestMain(m *testing.M) {
	flag.Set("test.parallel", "8") // the tests mostly wait
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "understudy-interop-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	binary = filepath.Join(dir, "understudy")
	build := exec.Command("go", "build", "-ldflags=-s -w", "-o", dir, "github.com/understudy-lb/understudy/cmd/understudy", "github.com/understudy-lb/understudy/test/interop/stockclient")
	if output, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "building programs: %v\n%s", err, output)
		return 1
	}
	return m.Run()
}

type process struct {
	cmd     *exec.Cmd
	address string
	lines   chan map[string]any
}

// serve starts "understudy serve" for the files at path. The process is killed when the test ends.
// Port 0 in address selects a free port.
func serve(t *testing.T, address, path string, flags ...string) *process {
	t.Helper()
	cmd := exec.Command(binary, append([]string{"serve", path, "--listen", address, "-o", "json"}, flags...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &process{cmd: cmd, lines: make(chan map[string]any, 10_000)}
	go p.read(bufio.NewScanner(out))
	t.Cleanup(p.kill)
	p.address, _ = p.wait(t, "serving")["address"].(string)
	return p
}

func (p *process) read(lines *bufio.Scanner) {
	defer close(p.lines)
	for lines.Scan() {
		var fields map[string]any
		if json.Unmarshal(lines.Bytes(), &fields) == nil {
			p.lines <- fields
		}
	}
}

func (p *process) wait(t *testing.T, msg string) map[string]any {
	t.Helper()
	deadline := time.After(timeout)
	for {
		select {
		case line, ok := <-p.lines:
			if !ok {
				t.Fatalf("understudy serve ended before %q", msg)
			}
			if line["msg"] == msg {
				return line
			}
		case <-deadline:
			t.Fatalf("understudy serve did not log %q within %v", msg, timeout)
		}
	}
}

func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}

func backend(t *testing.T) string {
	t.Helper()
	_, address := backendServer(t, new(atomic.Int64))
	return address
}

type countingListener struct {
	net.Listener
	n *atomic.Int64
}

func (c countingListener) Accept() (net.Conn, error) {
	conn, err := c.Listener.Accept()
	if err == nil {
		c.n.Add(1)
	}
	return conn, err
}

func backendServer(t *testing.T, opened *atomic.Int64) (*grpc.Server, string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	server := grpc.NewServer(grpc.UnaryInterceptor(func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
		if err := grpc.SetHeader(ctx, metadata.Pairs("backend", address)); err != nil {
			return nil, err
		}
		return handle(ctx, req)
	}))
	healthpb.RegisterHealthServer(server, health.NewServer())
	go server.Serve(countingListener{listener, opened})
	t.Cleanup(server.Stop)
	return server, address
}

func call(conn *grpc.ClientConn) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	var header metadata.MD
	if _, err := healthpb.NewHealthClient(conn).Check(ctx, &healthpb.HealthCheckRequest{}, grpc.Header(&header)); err != nil {
		return "", err
	}
	return strings.Join(header.Get("backend"), ","), nil
}

func callN(t *testing.T, conn *grpc.ClientConn, n int) map[string]int {
	t.Helper()
	counts := make(map[string]int)
	for range n {
		b, err := call(conn)
		if err != nil {
			t.Fatalf("after %v: %v", counts, err)
		}
		counts[b]++
	}
	return counts
}

// pace is the time between calls of a loop, so that a test that waits leaves the CPU to others.
const pace = 10 * time.Millisecond

// traffic makes calls on n goroutines until stop is called. The test fails if a call fails. stop
// returns the number of calls.
func traffic(t *testing.T, conn *grpc.ClientConn, n int) (stop func() int64) {
	t.Helper()
	var calls atomic.Int64
	var callers sync.WaitGroup
	done := make(chan struct{})
	for range n {
		callers.Go(func() {
			for tick := time.Tick(pace); ; {
				select {
				case <-done:
					return
				case <-tick:
				}
				if _, err := call(conn); err != nil {
					t.Errorf("call %d failed: %v", calls.Load(), err)
					return
				}
				calls.Add(1)
			}
		})
	}
	stop = sync.OnceValue(func() int64 {
		close(done)
		callers.Wait()
		return calls.Load()
	})
	t.Cleanup(func() { stop() })
	return stop
}

func callUntil(t *testing.T, conn *grpc.ClientConn, address string) {
	t.Helper()
	tick := time.Tick(pace)
	for end := time.Now().Add(timeout); time.Now().Before(end); <-tick {
		b, err := call(conn)
		if err != nil {
			t.Fatal(err)
		}
		if b == address {
			return
		}
	}
	t.Fatalf("no call reached %s within %v", address, timeout)
}

// fileEndpoint is an endpoint in a file. If weight is 0, the endpoint has no weight in the file.
type fileEndpoint struct {
	address string
	weight  int
}

func write(t *testing.T, path string, endpoints ...fileEndpoint) {
	t.Helper()
	var b strings.Builder
	b.WriteString("endpoints:\n- lbEndpoints:\n")
	for _, p := range endpoints {
		host, port, err := net.SplitHostPort(p.address)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "  - endpoint: {address: {socketAddress: {address: %s, portValue: %s}}}\n", host, port)
		if p.weight > 0 {
			fmt.Fprintf(&b, "    loadBalancingWeight: %d\n", p.weight)
		}
	}
	temporary := path + ".new"
	if err := os.WriteFile(temporary, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(temporary, path); err != nil {
		t.Fatal(err)
	}
}
