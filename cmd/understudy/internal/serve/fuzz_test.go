package serve

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	rpcstatus "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/understudy-lb/understudy/internal/testing/adstest"
)

// fuzzStream is a server stream whose requests come from data. In data, the length of each request
// precedes it.
type fuzzStream struct {
	grpc.ServerStream
	ctx      context.Context
	data     []byte
	exceeded bool // a request was beyond the limits
}

func (w *fuzzStream) Context() context.Context    { return w.ctx }
func (w *fuzzStream) SetHeader(metadata.MD) error { return nil }
func (w *fuzzStream) SendMsg(any) error           { return nil }

func (w *fuzzStream) RecvMsg(m any) error {
	data, n := protowire.ConsumeBytes(w.data)
	if n < 0 {
		return io.EOF
	}
	w.data = w.data[n:]
	r := m.(*discoveryv3.DiscoveryRequest)
	if err := proto.Unmarshal(data, r); err != nil {
		return err
	}
	w.exceeded = w.exceeded || len(r.GetResourceNames()) > fuzzedNames || len(r.GetTypeUrl()) > maxName || len(r.GetNode().GetId()) > maxName
	return nil
}

const fuzzedNames = 20

func encodeRequests(t testing.TB, requests ...proto.Message) (all []byte) {
	for _, r := range requests {
		data, err := proto.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		all = protowire.AppendBytes(all, data)
	}
	return all
}

// lineChecker is the writer of a log. It checks that the lines are short and contain no control
// characters.
type lineChecker struct {
	t      *testing.T
	maxLen int
}

func (l lineChecker) Write(line []byte) (int, error) {
	if text := strings.TrimSuffix(string(line), "\n"); len(text) > l.maxLen || strings.ContainsAny(text, "\n\r\x00\x1b") {
		l.t.Errorf("the log has the line %q", line)
	}
	return len(line), nil
}

// FuzzRequests sends arbitrary requests. The server must reject a request that exceeds a limit,
// name this limit in the error, and release all memory when the stream ends.
func FuzzRequests(f *testing.F) {
	node := &corev3.Node{Id: "me", UserAgentName: "agent\x1b"}
	for _, typeURL := range []string{endpointType, clusterType, listenerType, "type.googleapis.com/made.up", ""} {
		f.Add(encodeRequests(f,
			&discoveryv3.DiscoveryRequest{TypeUrl: typeURL, ResourceNames: []string{"a", "b"}, Node: node},
			&discoveryv3.DiscoveryRequest{TypeUrl: typeURL, ResourceNames: []string{"a"}, ResponseNonce: "1", VersionInfo: "1"},
			&discoveryv3.DiscoveryRequest{TypeUrl: typeURL, ResponseNonce: "1", ErrorDetail: &rpcstatus.Status{Message: "no\n"}}))
	}
	f.Add(encodeRequests(f, &discoveryv3.DiscoveryRequest{TypeUrl: endpointType, ResourceNames: strings.Split(strings.Repeat("x", 30), "")}))
	f.Fuzz(func(t *testing.T, data []byte) {
		c := newClients(slog.New(slog.NewTextHandler(lineChecker{t, 20_000}, &slog.HandlerOptions{Level: slog.LevelDebug})), newMetrics(func() float64 { return 0 }), fuzzedNames)
		r := newResources(RoundRobin)
		if err := r.set(changes{updated: []string{"a"}}, map[string]servedCluster{"a": {cluster: newStatic(adstest.Cluster("a", "10.0.0.1:1"))}}); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		client := &fuzzStream{ctx: ctx, data: data}
		server := &ads{ctx: ctx, clients: c, resources: r, responseTimeout: oneHour}
		err := server.StreamAggregatedResources(&grpc.GenericServerStream[discoveryv3.DiscoveryRequest, discoveryv3.DiscoveryResponse]{ServerStream: client})
		if code := status.Code(err); code == codes.ResourceExhausted && !strings.HasSuffix(err.Error(), ")") || err == nil && client.exceeded {
			t.Errorf("the stream ends with %v", err)
		}
		if c.held != 0 || len(c.streams) != 0 {
			t.Errorf("after the stream, %d bytes of %d streams are held", c.held, len(c.streams))
		}
	})
}

func FuzzEntry(f *testing.F) {
	for _, seed := range []string{
		`{"file":"a.yaml","cluster":{"name":"a","loadAssignment":{"clusterName":"a","endpoints":[{"lbEndpoints":[{"endpoint":{"address":{"socketAddress":{"address":"10.0.0.1","portValue":1}}}}]}]}}}`,
		`{"file":"a","lost":true,"cluster":{"name":"a","type":"EDS"}}`, `{"cluster":{}}`, `{"cluster":null}`, `{}`, `[]`, `{`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		e, err := parseEntry(data)
		if err != nil {
			return
		}
		cluster, err := protojson.Marshal(e.parsed.Cluster)
		if err != nil {
			return // the metadata contains a value that JSON does not support, such as NaN
		}
		encoded, err := json.Marshal(entry{Source: e.Source, Lost: e.Lost, Cluster: cluster})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := parseEntry(encoded); err != nil || !proto.Equal(got.parsed.Cluster, e.parsed.Cluster) || got.Source != e.Source {
			t.Errorf("%s becomes %s, which is %+v, %v", data, encoded, got, err)
		}
	})
}
