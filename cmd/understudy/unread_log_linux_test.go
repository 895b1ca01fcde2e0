package main

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"regexp"
	"syscall"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
)

var droppedLinesPattern = regexp.MustCompile(`(?m)^understudy_serve_log_lines_dropped_total [1-9]`)

// fetchOnce connects, receives one response and disconnects. The server logs a line for each of
// these events.
func (s *serveProcess) fetchOnce(t *testing.T, ads discoveryv3.AggregatedDiscoveryServiceClient) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
	defer cancel()
	stream, err := ads.StreamAggregatedResources(ctx)
	must(t, err)
	must(t, stream.Send(&discoveryv3.DiscoveryRequest{TypeUrl: endpointType, ResourceNames: []string{"a"}, Node: &corev3.Node{Id: "me"}}))
	if _, err := stream.Recv(); err != nil {
		t.Fatalf("a client is not answered: %v", err)
	}
}

func (s *serveProcess) sendHTTP1(t *testing.T) {
	t.Helper()
	conn, err := net.Dial("tcp", s.address)
	must(t, err)
	defer conn.Close()
	_, err = conn.Write([]byte("GET / HTTP/1.1\r\nHost: understudy\r\n\r\n"))
	must(t, err)
	must(t, conn.SetReadDeadline(time.Now().Add(testTimeout)))
	if _, err := io.Copy(io.Discard, conn); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatal("a client that does not speak HTTP/2 is not turned away")
	}
}

func (s *serveProcess) fillLog(t *testing.T) {
	t.Helper()
	ads := discoveryv3.NewAggregatedDiscoveryServiceClient(s.dial(t))
	for end := time.Now().Add(2 * testTimeout); time.Now().Before(end); {
		for range 500 {
			s.fetchOnce(t, ads)
		}
		if _, page := s.get(t, "/metrics"); droppedLinesPattern.MatchString(page) {
			return
		}
	}
	t.Fatal("the log takes all, though nobody reads it")
}

// If nobody reads the log or standard error of a server, clients, probes, metrics and SIGTERM still
// work. When the log is read again, a line in it says how many lines were dropped.
func TestUnreadLogDoesNotBlock(t *testing.T) {
	t.Parallel()
	s := startServe(t, []string{"GRPC_GO_LOG_SEVERITY_LEVEL=info"}, "--log-level", "debug")
	for range 200 {
		s.sendHTTP1(t)
	}
	s.fillLog(t)
	s.checkHealth(t, s.dial(t))
	if code, body := s.get(t, "/healthz"); code != 200 {
		t.Errorf("/healthz answers %d %q", code, body)
	}
	if n, _ := s.awaitLog(t, "log lines were dropped, because nobody read them")["lines"].(float64); n < 1 {
		t.Errorf("the log says that %v lines are missing", n)
	}
	s.fillLog(t)
	must(t, s.Process.Signal(syscall.SIGTERM))
	s.awaitExit(t)
	if s.exitErr != nil {
		t.Errorf("SIGTERM ends the process with %v", s.exitErr)
	}
}

func TestLogReaderExits(t *testing.T) {
	t.Parallel()
	s := startServe(t, nil)
	s.outPipe.Close()
	s.errPipe.Close()
	conn := s.dial(t)
	for range 10 {
		s.fetchOnce(t, discoveryv3.NewAggregatedDiscoveryServiceClient(conn))
	}
	s.checkHealth(t, conn)
	must(t, s.Process.Signal(syscall.SIGTERM))
	s.awaitExit(t)
	if s.exitErr != nil {
		t.Errorf("SIGTERM ends the process with %v", s.exitErr)
	}
}
