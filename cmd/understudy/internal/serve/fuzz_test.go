package serve

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
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
	ctx    context.Context
	limits Limits
	data   []byte
}

func (w *fuzzStream) Context() context.Context    { return w.ctx }
func (w *fuzzStream) SetHeader(metadata.MD) error { return nil }
func (w *fuzzStream) SendMsg(any) error           { return nil }

var errLimitExceeded = errors.New("a request beyond the limits was accepted")

func (w *fuzzStream) RecvMsg(m any) error {
	data, n := protowire.ConsumeBytes(w.data)
	if n < 0 {
		return io.EOF
	}
	w.data = w.data[n:]
	in := m.(*incomingRequest)
	if err := in.decode(data); err != nil || in.limitErr != nil {
		return err
	}
	var lists [][]string
	var node *corev3.Node
	var errorDetail *rpcstatus.Status
	switch r := in.message.(type) {
	case *discoveryv3.DiscoveryRequest:
		lists, node, errorDetail = [][]string{r.GetResourceNames(), {r.GetTypeUrl(), r.GetVersionInfo(), r.GetResponseNonce()}}, r.GetNode(), r.GetErrorDetail()
	case *discoveryv3.DeltaDiscoveryRequest:
		lists, node, errorDetail = [][]string{r.GetResourceNamesSubscribe(), r.GetResourceNamesUnsubscribe(), {r.GetTypeUrl(), r.GetResponseNonce()}}, r.GetNode(), r.GetErrorDetail()
	}
	if len(node.GetId()) > w.limits.NodeID || node.GetMetadata() != nil || errorDetail.GetDetails() != nil {
		return errLimitExceeded
	}
	for _, list := range lists {
		for _, name := range list {
			if len(list) > w.limits.Names || len(name) > w.limits.Name {
				return errLimitExceeded
			}
		}
	}
	return nil
}

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
	for _, typeURL := range []string{resourcev3.EndpointType, resourcev3.ClusterType, resourcev3.ListenerType, "type.googleapis.com/made.up", ""} {
		f.Add(encodeRequests(f,
			&discoveryv3.DiscoveryRequest{TypeUrl: typeURL, ResourceNames: []string{"a", "b"}, Node: node},
			&discoveryv3.DiscoveryRequest{TypeUrl: typeURL, ResourceNames: []string{"a"}, ResponseNonce: "1", VersionInfo: "1"},
			&discoveryv3.DiscoveryRequest{TypeUrl: typeURL, ResponseNonce: "1", ErrorDetail: &rpcstatus.Status{Message: "no\n"}}), false)
		f.Add(encodeRequests(f,
			&discoveryv3.DeltaDiscoveryRequest{TypeUrl: typeURL, ResourceNamesSubscribe: []string{"a", "*"}, Node: node},
			&discoveryv3.DeltaDiscoveryRequest{TypeUrl: typeURL, ResourceNamesUnsubscribe: []string{"a", "x"}, ResponseNonce: "1"}), true)
	}
	f.Add(encodeRequests(f, &discoveryv3.DiscoveryRequest{TypeUrl: resourcev3.EndpointType, ResourceNames: strings.Split(strings.Repeat("x", 30), "")}), false)
	f.Fuzz(func(t *testing.T, data []byte, incremental bool) {
		limits, err := Limits{Names: 20, Name: 80, NodeID: 30, Types: 4, Logged: 50}.withDefaults()
		if err != nil {
			t.Fatal(err)
		}
		c := newClients(slog.New(slog.NewTextHandler(lineChecker{t, 4000}, &slog.HandlerOptions{Level: slog.LevelDebug})), limits)
		c.recordChange("a", true, time.Now())
		r := newResources(RoundRobin)
		updated := []*clusterConfig{{endpoints: adstest.Cluster("a", "10.0.0.1:1")}}
		if err := errors.Join(r.set(updated, nil), r.gate.update(allKnown, updated, nil)); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		client := &fuzzStream{ctx: ctx, limits: limits, data: data}
		server := &ads{clients: c, gate: r.gate}
		if incremental {
			err = server.DeltaAggregatedResources(&grpc.GenericServerStream[discoveryv3.DeltaDiscoveryRequest, discoveryv3.DeltaDiscoveryResponse]{ServerStream: client})
		} else {
			err = server.StreamAggregatedResources(&grpc.GenericServerStream[discoveryv3.DiscoveryRequest, discoveryv3.DiscoveryResponse]{ServerStream: client})
		}
		if errors.Is(err, errLimitExceeded) || status.Code(err) == codes.ResourceExhausted && !strings.Contains(err.Error(), "(--") {
			t.Errorf("the stream ends with %v", err)
		}
		c.measure(time.Now())
		if c.heldBytes != 0 || len(c.streams)+len(c.connections) != 0 {
			t.Errorf("after the stream, %d bytes of %d streams and %d connections are held", c.heldBytes, len(c.streams), len(c.connections))
		}
	})
}

func FuzzEntry(f *testing.F) {
	for _, seed := range []string{
		`{"file":"a.yaml","cluster":{"clusterName":"a","endpoints":[{"lbEndpoints":[{"endpoint":{"address":{"socketAddress":{"address":"10.0.0.1","portValue":1}}}}]}]}}`,
		`{"file":"a","lost":true,"config":true,"cluster":{"name":"a","type":"EDS"}}`, `{"cluster":{}}`, `{"cluster":null,"config":true}`, `{}`, `[]`, `{`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		e, err := parseEntry(data)
		if err != nil {
			return
		}
		cluster, err := protojson.Marshal(e.parsed.message())
		if err != nil {
			return // the metadata contains a value that JSON does not support, such as NaN
		}
		encoded, err := json.Marshal(entry{File: e.File, Lost: e.Lost, Cluster: cluster, Config: e.parsed.config != nil})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := parseEntry(encoded); err != nil || !got.parsed.equal(e.parsed) || got.File != e.File {
			t.Errorf("%s becomes %s, which is %+v, %v", data, encoded, got, err)
		}
	})
}
