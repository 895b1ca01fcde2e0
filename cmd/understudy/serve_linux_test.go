package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
)

const patience = 30 * time.Second

const oneEndpoint = `endpoints: [{lbEndpoints: [{endpoint: {address: {socketAddress: {address: 127.0.0.1, portValue: 1}}}}]}]`

type served struct {
	*exec.Cmd
	out              *bufio.Reader // log of the process; only the method log reads it
	outPipe, errPipe *os.File
	address, metrics string
	ended            chan struct{}
	err              error // result of the process, set before ended is closed
}

// serving starts a server, and reads its log until it serves. Without paths in args, it serves a
// file with one endpoint. Its stdout and stderr are pipes of only 4 KiB, which fill up quickly.
func serving(t *testing.T, env []string, args ...string) *served {
	t.Helper()
	if len(args) == 0 || strings.HasPrefix(args[0], "--") {
		path := filepath.Join(t.TempDir(), "a.yaml")
		writeFile(t, path, oneEndpoint)
		args = append([]string{path}, args...)
	}
	s := &served{Cmd: exec.Command(os.Args[0], append([]string{"serve", "--listen", "127.0.0.1:0", "--metrics", "0", "-o", "json"}, args...)...), ended: make(chan struct{})}
	s.Env = append(append(os.Environ(), asDemo+"=1"), env...)
	var theirs [2]*os.File
	s.outPipe, theirs[0] = smallPipe(t)
	s.errPipe, theirs[1] = smallPipe(t)
	s.Stdout, s.Stderr = theirs[0], theirs[1]
	must(t, s.Start())
	go func() {
		s.err = s.Wait()
		close(s.ended)
	}()
	t.Cleanup(func() {
		_ = s.Process.Kill()
		<-s.ended
	})
	theirs[0].Close()
	theirs[1].Close()
	s.out = bufio.NewReader(s.outPipe)
	s.address = s.log(t, "serving")["address"].(string)
	s.metrics = strings.TrimSuffix(s.log(t, "metrics")["url"].(string), "/metrics")
	return s
}

func smallPipe(t *testing.T) (ours, theirs *os.File) {
	t.Helper()
	ours, theirs, err := os.Pipe()
	must(t, err)
	t.Cleanup(func() { ours.Close() })
	_, err = unix.FcntlInt(theirs.Fd(), unix.F_SETPIPE_SZ, 4096)
	must(t, err)
	return ours, theirs
}

func (s *served) log(t *testing.T, msg string) map[string]any {
	t.Helper()
	must(t, s.outPipe.SetReadDeadline(time.Now().Add(patience)))
	for {
		line, err := s.out.ReadBytes('\n')
		if err != nil {
			t.Fatalf("the log ends before %q: %v", msg, err)
		}
		var fields map[string]any
		must(t, json.Unmarshal(line, &fields))
		if fields["msg"] == msg {
			return fields
		}
	}
}

func (s *served) get(t *testing.T, path string) (int, string) {
	t.Helper()
	client := http.Client{Timeout: patience}
	defer client.CloseIdleConnections()
	response, err := client.Get(s.metrics + path)
	must(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	must(t, err)
	return response.StatusCode, string(body)
}

func (s *served) dial(t *testing.T) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(s.address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	must(t, err)
	t.Cleanup(func() { conn.Close() })
	return conn
}

func (s *served) probe(t *testing.T, conn *grpc.ClientConn) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if _, err := healthpb.NewHealthClient(conn).Check(ctx, &healthpb.HealthCheckRequest{}); err != nil {
		t.Fatalf("a probe fails: %v", err)
	}
}

func (s *served) ends(t *testing.T) {
	t.Helper()
	select {
	case <-s.ended:
	case <-time.After(patience):
		t.Fatalf("the process did not end within %v", patience)
	}
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	must(t, os.WriteFile(path+".new", []byte(text), 0o600))
	must(t, os.Rename(path+".new", path))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
