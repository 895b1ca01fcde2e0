package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	rpcstatus "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/structpb"
)

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
	s, _ := start(t, Options{Paths: []string{makeDir(t, t.TempDir(), "a.yaml")}, MaxNames: 20, Metrics: "0"})
	long := strings.Repeat("x", maxName+1)
	for _, test := range []struct {
		what, want string
		r          *discoveryv3.DiscoveryRequest
	}{
		{"names", "21 names of a type, want at most 20 (max-names)", &discoveryv3.DiscoveryRequest{TypeUrl: endpointType, ResourceNames: makeNames("n", 21)}},
		{"a name", "(max-name)", &discoveryv3.DiscoveryRequest{TypeUrl: endpointType, ResourceNames: []string{"a", long}}},
		{"a type", "(max-name)", &discoveryv3.DiscoveryRequest{TypeUrl: long}},
		{"a version", "(max-name)", &discoveryv3.DiscoveryRequest{TypeUrl: endpointType, VersionInfo: long}},
		{"a nonce", "(max-name)", &discoveryv3.DiscoveryRequest{TypeUrl: endpointType, ResponseNonce: long}},
		{"a node id", "(max-name)", &discoveryv3.DiscoveryRequest{TypeUrl: endpointType, Node: &corev3.Node{Id: long}}},
		{"an agent", "(max-name)", &discoveryv3.DiscoveryRequest{TypeUrl: endpointType, Node: &corev3.Node{UserAgentName: long}}},
		{"a message", "larger than max", &discoveryv3.DiscoveryRequest{TypeUrl: endpointType, ResourceNames: []string{strings.Repeat("x", maxMessage)}}},
	} {
		stream := openStream(t, s, nil)
		send(t, stream, test.r)
		expectLimitError(t, test.what, stream, test.want)
	}
	for _, names := range [][]string{nil, makeNames("n", 19)} {
		good := openStream(t, s, nil)
		request := &discoveryv3.DiscoveryRequest{TypeUrl: endpointType, ResourceNames: append(names, "a"), Node: &corev3.Node{Id: long[:maxName]}}
		send(t, good, request)
		if got := endpointCounts(t, receive(t, good)); got["a"] != 1 {
			t.Errorf("a client that keeps the limits has %v", got)
		}
	}
	expectMetrics(t, s, `understudy_serve_refused_total{limit="max-names"} 1`, `understudy_serve_refused_total{limit="max-name"} 6`)
}

// Long texts from a client are truncated in the log.
func TestLoggedTextsAreTruncated(t *testing.T) {
	s, l := start(t, Options{Paths: []string{makeDir(t, t.TempDir(), "a.yaml")}})
	stream := openStream(t, s, nil)
	metadata, err := structpb.NewStruct(map[string]any{"x": strings.Repeat("y", 1000)})
	must(t, err)
	long := strings.Repeat("n", 2000)
	request := &discoveryv3.DiscoveryRequest{TypeUrl: endpointType, ResourceNames: append(makeNames(long, 30), "a"), Node: &corev3.Node{Id: long, Metadata: metadata}}
	send(t, stream, request)
	checkTruncated := func(what string, value any, maxLen int) {
		t.Helper()
		if text := fmt.Sprint(value); len(text) > maxLen || !strings.Contains(text, "n… (") && !strings.Contains(text, "and 11 more") {
			t.Errorf("%s is logged as %v, in %d bytes", what, value, len(text))
		}
	}
	checkTruncated("the node id", l.wait(t, "client connected")["node"], 520)
	checkTruncated("the names", l.wait(t, "client request")["names"], 20*530)
	sendNACK(t, stream, receive(t, stream), "", strings.Repeat("n", 100_000), "a")
	checkTruncated("the reason", l.wait(t, "client NACK")["reason"], 520)
}

// If the requests of all clients together need too much memory, the stream that needs the most ends.
func TestClientMemoryLimit(t *testing.T) {
	const most = DefaultMaxNames * (bytesPerName + 7)
	s, l := start(t, Options{Paths: []string{makeDir(t, t.TempDir(), "a.yaml")}})
	modest := openStream(t, s, nil)
	next := requestEndpoints(t, modest, "a")
	next()
	var greedy []adsStream
	for i := range maxClientMemory/most/3 + 2 {
		stream := openStream(t, s, nil)
		for _, typeURL := range []string{endpointType, clusterType, listenerType} {
			_ = stream.Send(&discoveryv3.DiscoveryRequest{TypeUrl: typeURL, ResourceNames: makeNames(fmt.Sprintf("%02d-", i), DefaultMaxNames)})
		}
		greedy = append(greedy, stream)
	}
	if line := l.wait(t, "client refused"); line["limit"] != "client-memory" {
		t.Errorf("logged %v", line)
	}
	send(t, modest, &discoveryv3.DiscoveryRequest{TypeUrl: clusterType, ResourceNames: makeNames("few", 200)})
	receive(t, modest)
	refused := 0
	must(t, modest.CloseSend())
	for _, stream := range greedy {
		must(t, stream.CloseSend())
		if _, end := drain(stream); end.Code() == codes.ResourceExhausted && strings.Contains(end.Message(), "client-memory") {
			refused++
		}
	}
	if refused == 0 || refused > 3 {
		t.Errorf("%d of %d greedy streams were ended", refused, len(greedy))
	}
	for range len(greedy) + 1 {
		l.wait(t, "client disconnected")
	}
	if held := s.publisher.clients.held; held != 0 {
		t.Errorf("%d bytes are still held for nobody", held)
	}
	expectServed(t, s, "after greedy clients", map[string]int{"a": 1})
}

// A connection above the limit is closed at once, so that its client uses another server.
func TestConnectionLimit(t *testing.T) {
	s, l := start(t, Options{Paths: []string{makeDir(t, t.TempDir(), "a.yaml")}, MaxConnections: 2, Metrics: "0"})
	dial := func() (conn net.Conn, served bool) {
		conn, err := net.Dial("tcp", s.Addr().String())
		must(t, err)
		t.Cleanup(func() { conn.Close() })
		must(t, conn.SetReadDeadline(time.Now().Add(testTimeout)))
		_, err = io.ReadFull(conn, make([]byte, 9)) // an HTTP/2 server sends first
		if errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatal("a connection is neither served nor closed")
		}
		return conn, err == nil
	}
	first, served := dial()
	_, alsoServed := dial()
	if _, third := dial(); !served || !alsoServed || third {
		t.Errorf("of three connections, these are served: %v, %v, %v", served, alsoServed, third)
	}
	if line := l.wait(t, "client refused"); line["limit"] != "max-connections" || line["error"] != "3 connections, want at most 2" {
		t.Errorf("logged %v", line)
	}
	expectMetrics(t, s, `understudy_serve_refused_total{limit="max-connections"} 1`)
	first.Close()
	for begin, served := time.Now(), false; !served; _, served = dial() {
		if time.Since(begin) > testTimeout {
			t.Fatal("no connection is served in place of one that has gone")
		}
	}
}

func TestStreamLimit(t *testing.T) {
	s, _ := start(t, Options{Paths: []string{makeDir(t, t.TempDir(), "a.yaml")}})
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
	if !strings.Contains(string(settings), maxConcurrentStreams+"\x00\x00\x00\x08") {
		t.Errorf("the settings are %x, want 8 streams", settings)
	}
}

// Until a request is handled, the server keeps only what it uses of it: empty messages take a hundred
// times as much memory as on the network.
func TestUnusedFieldsAreDropped(t *testing.T) {
	r := newRequest(endpointType, "a")
	r.Node.UserAgentName = "agent"
	r.ErrorDetail = &rpcstatus.Status{Message: "no"}
	want := proto.CloneOf(r)
	for range 1000 {
		r.Node.Extensions = append(r.Node.Extensions, &corev3.Extension{})
		r.ErrorDetail.Details = append(r.ErrorDetail.Details, &anypb.Any{})
		r.ResourceLocators = append(r.ResourceLocators, &discoveryv3.ResourceLocator{})
	}
	data, err := proto.Marshal(r)
	must(t, err)
	got := new(discoveryv3.DiscoveryRequest)
	must(t, codec{encoding.GetCodecV2("proto"), new(limiter)}.Unmarshal(mem.BufferSlice{mem.SliceBuffer(data)}, got))
	if !proto.Equal(got, want) {
		t.Errorf("%d bytes are kept, want %v", proto.Size(got), want)
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

// If a request is handled while its stream ends, no memory is charged for it.
func TestRequestAfterEndOfStream(t *testing.T) {
	c := newTestClients(slog.New(slog.DiscardHandler))
	for range 100 { // many times, so that the race detector has a chance to see a race
		s := c.add(context.Background(), func(error) {})
		var requests sync.WaitGroup
		requests.Go(func() { c.hold(s, 100) })
		c.remove(s)
		requests.Wait()
		c.hold(s, 200)
	}
	if len(c.streams) > 0 || c.held > 0 {
		t.Errorf("%d streams and %d bytes are held, want none", len(c.streams), c.held)
	}
}
