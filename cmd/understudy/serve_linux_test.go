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

const testTimeout = 30 * time.Second

const (
	clusterType  = "type.googleapis.com/envoy.config.cluster.v3.Cluster"
	endpointType = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment"
	listenerType = "type.googleapis.com/envoy.config.listener.v3.Listener"
)

const oneEndpoint = `endpoints: [{lbEndpoints: [{endpoint: {address: {socketAddress: {address: 127.0.0.1, portValue: 1}}}}]}]`

type serveProcess struct {
	*exec.Cmd
	logReader        *bufio.Reader // reads from outPipe; only awaitLog uses it
	outPipe, errPipe *os.File
	address, metrics string
	exited           chan struct{}
	exitErr          error // set before exited is closed
}

// startServe runs "understudy serve" and waits until it serves. If args contain no path, it serves
// a file with one endpoint. The stdout and stderr of the process are pipes of only 4 KiB, so that
// they fill up quickly.
func startServe(t *testing.T, env []string, args ...string) *serveProcess {
	t.Helper()
	if len(args) == 0 || strings.HasPrefix(args[0], "--") {
		path := filepath.Join(t.TempDir(), "a.yaml")
		writeFile(t, path, oneEndpoint)
		args = append([]string{path}, args...)
	}
	s := &serveProcess{Cmd: exec.Command(os.Args[0], append([]string{"serve", "--listen", "127.0.0.1:0", "--metrics", "0", "-o", "json"}, args...)...), exited: make(chan struct{})}
	s.Env = append(append(os.Environ(), runAsCommandEnv+"=1"), env...)
	var writeEnds [2]*os.File
	s.outPipe, writeEnds[0] = smallPipe(t)
	s.errPipe, writeEnds[1] = smallPipe(t)
	s.Stdout, s.Stderr = writeEnds[0], writeEnds[1]
	must(t, s.Start())
	go func() {
		s.exitErr = s.Wait()
		close(s.exited)
	}()
	t.Cleanup(func() {
		_ = s.Process.Kill()
		<-s.exited
	})
	writeEnds[0].Close()
	writeEnds[1].Close()
	s.logReader = bufio.NewReader(s.outPipe)
	s.address = s.awaitLog(t, "serving")["address"].(string)
	s.metrics = strings.TrimSuffix(s.awaitLog(t, "metrics")["url"].(string), "/metrics")
	return s
}

func smallPipe(t *testing.T) (readEnd, writeEnd *os.File) {
	t.Helper()
	readEnd, writeEnd, err := os.Pipe()
	must(t, err)
	t.Cleanup(func() { readEnd.Close() })
	_, err = unix.FcntlInt(writeEnd.Fd(), unix.F_SETPIPE_SZ, 4096)
	must(t, err)
	return readEnd, writeEnd
}

func (s *serveProcess) awaitLog(t *testing.T, msg string) map[string]any {
	t.Helper()
	must(t, s.outPipe.SetReadDeadline(time.Now().Add(testTimeout)))
	for {
		line, err := s.logReader.ReadBytes('\n')
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

func (s *serveProcess) get(t *testing.T, path string) (int, string) {
	t.Helper()
	client := http.Client{Timeout: testTimeout}
	defer client.CloseIdleConnections()
	response, err := client.Get(s.metrics + path)
	must(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	must(t, err)
	return response.StatusCode, string(body)
}

func (s *serveProcess) dial(t *testing.T) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(s.address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	must(t, err)
	t.Cleanup(func() { conn.Close() })
	return conn
}

func (s *serveProcess) checkHealth(t *testing.T, conn *grpc.ClientConn) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
	defer cancel()
	if _, err := healthpb.NewHealthClient(conn).Check(ctx, &healthpb.HealthCheckRequest{}); err != nil {
		t.Fatalf("a probe fails: %v", err)
	}
}

func (s *serveProcess) awaitExit(t *testing.T) {
	t.Helper()
	select {
	case <-s.exited:
	case <-time.After(testTimeout):
		t.Fatalf("the process did not end within %v", testTimeout)
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
