package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/structpb"
)

type deltaClient = discoveryv3.AggregatedDiscoveryService_DeltaAggregatedResourcesClient

func openDelta(t *testing.T, s *Server) deltaClient {
	t.Helper()
	conn, err := grpc.NewClient(s.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	must(t, err)
	ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
	t.Cleanup(func() {
		cancel()
		conn.Close()
	})
	stream, err := discoveryv3.NewAggregatedDiscoveryServiceClient(conn).DeltaAggregatedResources(ctx)
	must(t, err)
	return stream
}

func makeNames(prefix string, n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprint(prefix, i)
	}
	return names
}

// A request above a limit ends its stream, and the status names the limit. A request exactly at the
// limit is served.
func TestLimits(t *testing.T) {
	s, _ := start(t, Options{
		Paths:   []string{makeDir(t, t.TempDir(), "a.yaml")},
		Limits:  Limits{Message: 10_000, Types: 2, Names: 20, Name: 70, NodeID: 30},
		Metrics: "0",
	})
	long := strings.Repeat("x", 71)
	for limit, r := range map[string]*discoveryv3.DiscoveryRequest{
		"max-node-id": {TypeUrl: resourcev3.EndpointType, Node: &corev3.Node{Id: long}},
		"max-names":   {TypeUrl: resourcev3.EndpointType, ResourceNames: makeNames("n", 21)},
		"max-name":    {TypeUrl: resourcev3.EndpointType, ResourceNames: []string{long}},
	} {
		stream := openStream(t, s, nil)
		send(t, stream, r)
		expectLimitError(t, limit, stream, "--"+limit)
	}
	for what, r := range map[string]*discoveryv3.DiscoveryRequest{
		"a type":    {TypeUrl: long},
		"a version": {TypeUrl: resourcev3.EndpointType, VersionInfo: long},
		"a nonce":   {TypeUrl: resourcev3.EndpointType, ResponseNonce: long},
	} {
		stream := openStream(t, s, nil)
		send(t, stream, r)
		expectLimitError(t, what, stream, "--max-name")
	}
	large := openStream(t, s, nil)
	send(t, large, &discoveryv3.DiscoveryRequest{TypeUrl: long, ResourceNames: makeNames("n", 5000)})
	expectLimitError(t, "a message", large, "larger than max")
	for _, names := range [][]string{nil, makeNames("n", 19)} {
		good := openStream(t, s, nil)
		request := &discoveryv3.DiscoveryRequest{TypeUrl: resourcev3.EndpointType, ResourceNames: append(names, "a"), Node: &corev3.Node{Id: long[:30]}}
		send(t, good, request)
		if got := endpointCounts(t, receive(t, good)); got["a"] != 1 {
			t.Errorf("a client that keeps the limits has %v", got)
		}
	}
	expectMetrics(t, s, `understudy_serve_refused_total{limit="max-names"} 1`, `understudy_serve_refused_total{limit="max-name"} 4`, `understudy_serve_refused_total{limit="max-node-id"} 1`)
}

// In the incremental variant, each request adds names. The limit applies to all names of a stream.
func TestLimitOfIncrementalNames(t *testing.T) {
	s, _ := start(t, Options{Paths: []string{makeDir(t, t.TempDir(), "a.yaml")}, Limits: Limits{Names: 20}})
	stream := openDelta(t, s)
	ask := func(r *discoveryv3.DeltaDiscoveryRequest) {
		t.Helper()
		r.TypeUrl = resourcev3.EndpointType
		must(t, stream.Send(r))
	}
	ask(&discoveryv3.DeltaDiscoveryRequest{ResourceNamesSubscribe: append(makeNames("n", 19), "a"), InitialResourceVersions: map[string]string{"a": "1"}})
	if r, err := stream.Recv(); err != nil || len(r.GetResources()) != 1 || r.GetResources()[0].GetName() != "a" {
		t.Errorf("%v (%v), want a", r, err)
	}
	ask(&discoveryv3.DeltaDiscoveryRequest{ResourceNamesUnsubscribe: append(makeNames("n", 19), "a"), ResourceNamesSubscribe: makeNames("m", 1)})
	ask(&discoveryv3.DeltaDiscoveryRequest{ResourceNamesSubscribe: append(makeNames("o", 18), "a")})
	if r, err := stream.Recv(); err != nil || len(r.GetResources()) != 1 {
		t.Errorf("%v (%v), want a again: it is asked for once more", r, err)
	}
	ask(&discoveryv3.DeltaDiscoveryRequest{ResourceNamesSubscribe: makeNames("p", 1)})
	expectLimitError(t, "21 names", stream, "--max-names")
}

// Long texts from a client are truncated in the log.
func TestLoggedTextsAreTruncated(t *testing.T) {
	s, l := start(t, Options{Paths: []string{makeDir(t, t.TempDir(), "a.yaml")}, Limits: Limits{Logged: 100}})
	stream := openStream(t, s, nil)
	metadata, err := structpb.NewStruct(map[string]any{"x": strings.Repeat("y", 1000)})
	must(t, err)
	long := strings.Repeat("n", 1000)
	request := &discoveryv3.DiscoveryRequest{TypeUrl: resourcev3.EndpointType, ResourceNames: append(makeNames(long, 30), "a"), Node: &corev3.Node{Id: long, Metadata: metadata}}
	send(t, stream, request)
	checkTruncated := func(what string, value any, maxLen int) {
		t.Helper()
		if text := fmt.Sprint(value); len(text) > maxLen || !strings.Contains(text, "n… (10") && !strings.Contains(text, "and 11 more") {
			t.Errorf("%s is logged as %v, in %d bytes", what, value, len(text))
		}
	}
	checkTruncated("the node id", l.wait(t, "client connected")["node"], 120)
	checkTruncated("the names", l.wait(t, "client request")["names"], 20*130)
	sendNACK(t, stream, receive(t, stream), "", strings.Repeat("n", 100_000), "a")
	checkTruncated("the reason", l.wait(t, "client NACK")["reason"], 120)
}

func TestClientMemoryLimit(t *testing.T) {
	s, l := start(t, Options{Paths: []string{makeDir(t, t.TempDir(), "a.yaml")}, Limits: Limits{Memory: 1, Message: 100_000}})
	modest := openStream(t, s, nil)
	next := requestEndpoints(t, modest, "a")
	next()
	for i := range 3 {
		greedy := openStream(t, s, nil)
		for _, typeURL := range []string{resourcev3.EndpointType, resourcev3.ClusterType} {
			send(t, greedy, &discoveryv3.DiscoveryRequest{TypeUrl: typeURL, ResourceNames: makeNames(fmt.Sprint(i, "-"), 1000)})
		}
		expectLimitError(t, "a greedy client", greedy, "--client-memory")
	}
	if line := l.wait(t, "client refused"); !strings.Contains(line["error"].(string), "--client-memory") {
		t.Errorf("logged %v", line)
	}
	greedy := openStream(t, s, nil)
	send(t, greedy, &discoveryv3.DiscoveryRequest{TypeUrl: resourcev3.EndpointType, ResourceNames: makeNames("g", 1600)})
	receive(t, greedy)
	send(t, modest, &discoveryv3.DiscoveryRequest{TypeUrl: resourcev3.ClusterType, ResourceNames: makeNames("few", 200)})
	expectLimitError(t, "a client with most", greedy, "--client-memory")
	receive(t, modest)
	must(t, modest.CloseSend())
	for range 5 {
		l.wait(t, "client disconnected")
	}
	expectServed(t, s, "after greedy clients", map[string]int{"a": 1})
	s.publisher.clients.mu.Lock()
	defer s.publisher.clients.mu.Unlock()
	if heldBytes := s.publisher.clients.heldBytes; heldBytes > 1000 {
		t.Errorf("%d bytes are still held for nobody", heldBytes)
	}
}

// A connection above the limit is closed at once. When a connection has closed, another one is
// accepted.
func TestConnectionLimit(t *testing.T) {
	s, l := start(t, Options{Paths: []string{makeDir(t, t.TempDir(), "a.yaml")}, Limits: Limits{Connections: 2}})
	dial := func() net.Conn {
		conn, err := net.Dial("tcp", s.Addr().String())
		must(t, err)
		t.Cleanup(func() { conn.Close() })
		return conn
	}
	readGreeting := func(conn net.Conn) error { // an HTTP/2 server sends first, so a read succeeds if the connection is accepted
		must(t, conn.SetReadDeadline(time.Now().Add(testTimeout)))
		_, err := io.ReadFull(conn, make([]byte, 9))
		if errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatal("a connection is neither served nor closed")
		}
		return err
	}
	first, second := dial(), dial()
	must(t, readGreeting(first))
	must(t, readGreeting(second))
	if err := readGreeting(dial()); err == nil {
		t.Error("a third connection is served, want it closed")
	}
	if line := l.wait(t, "client refused"); !strings.Contains(line["error"].(string), "--max-connections") {
		t.Errorf("logged %v", line)
	}
	first.Close()
	for begin := time.Now(); readGreeting(dial()) != nil; {
		if time.Since(begin) > testTimeout {
			t.Fatal("no connection is served in place of one that has gone")
		}
	}
}

func TestStreamLimit(t *testing.T) {
	s, _ := start(t, Options{Paths: []string{makeDir(t, t.TempDir(), "a.yaml")}, Limits: Limits{Streams: 3}})
	conn, err := net.Dial("tcp", s.Addr().String())
	must(t, err)
	defer conn.Close()
	header := make([]byte, 9) // header of the initial SETTINGS frame
	_, err = io.ReadFull(conn, header)
	must(t, err)
	settings := make([]byte, int(header[1])<<8|int(header[2]))
	_, err = io.ReadFull(conn, settings)
	must(t, err)
	const maxConcurrentStreams = "\x00\x03"
	if !strings.Contains(string(settings), maxConcurrentStreams+"\x00\x00\x00\x03") {
		t.Errorf("the settings are %x, want 3 streams", settings)
	}
}

// A request that is not valid protobuf ends only its own stream.
func TestInvalidRequest(t *testing.T) {
	s, _ := start(t, Options{Paths: []string{makeDir(t, t.TempDir(), "a.yaml")}})
	for _, raw := range []string{"\xff", "\x0a\x05ab", "\x12\x02\x0a\x09", "\x0a\x01\xff"} {
		stream := openStream(t, s, nil)
		must(t, stream.SendMsg(&structpb.Value{Kind: &structpb.Value_StringValue{StringValue: "x"}})) // opens the stream; the request with the bytes in raw follows
		message := new(discoveryv3.DiscoveryRequest)
		message.ProtoReflect().SetUnknown([]byte(raw))
		if err := stream.Send(message); err != nil && err != io.EOF {
			t.Fatal(err)
		}
		if _, end := drain(stream); end.Code() == codes.OK || end.Code() == codes.DeadlineExceeded {
			t.Errorf("%q: the stream ends with %v", raw, end)
		}
	}
	expectServed(t, s, "after what is no request", map[string]int{"a": 1})
}

func TestDocumentListsEveryLimit(t *testing.T) {
	page, err := os.ReadFile("../../../../docs/limits.md")
	must(t, err)
	for _, f := range new(Limits).flags() {
		if want := fmt.Sprintf("| `--%s` | %d |", f.name, f.defaultValue); !strings.Contains(string(page), want) {
			t.Errorf("no %q in docs/limits.md", want)
		}
	}
	for _, wrong := range []int{-1, 1<<30 + 1} {
		if _, err := (Limits{Types: wrong}).withDefaults(); err == nil || !strings.Contains(err.Error(), "--max-types") {
			t.Errorf("%d types: %v", wrong, err)
		}
	}
}
