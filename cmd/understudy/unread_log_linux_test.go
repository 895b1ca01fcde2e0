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
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
)

var dropped = regexp.MustCompile(`(?m)^understudy_serve_log_lines_dropped_total [1-9]`)

// visit makes the server log three lines: a client connects, gets a response and disconnects.
func (s *served) visit(t *testing.T, ads discoveryv3.AggregatedDiscoveryServiceClient) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	stream, err := ads.StreamAggregatedResources(ctx)
	must(t, err)
	must(t, stream.Send(&discoveryv3.DiscoveryRequest{TypeUrl: resourcev3.EndpointType, ResourceNames: []string{"a"}, Node: &corev3.Node{Id: "me"}}))
	if _, err := stream.Recv(); err != nil {
		t.Fatalf("a client is not answered: %v", err)
	}
}

func (s *served) babble(t *testing.T) {
	t.Helper()
	conn, err := net.Dial("tcp", s.address)
	must(t, err)
	defer conn.Close()
	_, err = conn.Write([]byte("GET / HTTP/1.1\r\nHost: understudy\r\n\r\n"))
	must(t, err)
	must(t, conn.SetReadDeadline(time.Now().Add(patience)))
	if _, err := io.Copy(io.Discard, conn); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatal("a client that does not speak HTTP/2 is not turned away")
	}
}

func (s *served) flood(t *testing.T) {
	t.Helper()
	ads := discoveryv3.NewAggregatedDiscoveryServiceClient(s.dial(t))
	for end := time.Now().Add(2 * patience); time.Now().Before(end); {
		for range 500 {
			s.visit(t, ads)
		}
		if _, page := s.get(t, "/metrics"); dropped.MatchString(page) {
			return
		}
	}
	t.Fatal("the log takes all, though nobody reads it")
}

// While nobody reads the log or standard error, clients, probes, metrics and SIGTERM still work.
// When somebody reads the log again, a line in it says how many lines were dropped.
func TestALogThatNobodyReads(t *testing.T) {
	s := serving(t, []string{"GRPC_GO_LOG_SEVERITY_LEVEL=info"}, "--log-level", "debug")
	for range 200 {
		s.babble(t)
	}
	s.flood(t)
	s.probe(t, s.dial(t))
	if code, body := s.get(t, "/healthz"); code != 200 {
		t.Errorf("/healthz answers %d %q", code, body)
	}
	if n, _ := s.log(t, "log lines were dropped, since nobody read them")["lines"].(float64); n < 1 {
		t.Errorf("the log says that %v lines are missing", n)
	}
	s.flood(t)
	must(t, s.Process.Signal(syscall.SIGTERM))
	s.ends(t)
	if s.err != nil {
		t.Errorf("SIGTERM ends the process with %v", s.err)
	}
}

func TestALogWhoseReaderHasGone(t *testing.T) {
	s := serving(t, nil)
	s.outPipe.Close()
	s.errPipe.Close()
	conn := s.dial(t)
	for range 10 {
		s.visit(t, discoveryv3.NewAggregatedDiscoveryServiceClient(conn))
	}
	s.probe(t, conn)
	must(t, s.Process.Signal(syscall.SIGTERM))
	s.ends(t)
	if s.err != nil {
		t.Errorf("SIGTERM ends the process with %v", s.err)
	}
}
