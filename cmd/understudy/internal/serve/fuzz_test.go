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

// wire is the stream of a client. It reads requests from left, each after its length.
type wire struct {
	grpc.ServerStream
	ctx    context.Context
	limits Limits
	left   []byte
}

func (w *wire) Context() context.Context    { return w.ctx }
func (w *wire) SetHeader(metadata.MD) error { return nil }
func (w *wire) SendMsg(any) error           { return nil }

var errBeyond = errors.New("a request beyond the limits was accepted")

func (w *wire) RecvMsg(m any) error {
	data, n := protowire.ConsumeBytes(w.left)
	if n < 0 {
		return io.EOF
	}
	w.left = w.left[n:]
	in := m.(*incoming)
	if err := in.decode(data); err != nil || in.refused != nil {
		return err
	}
	var lists [][]string
	var node *corev3.Node
	var problem *rpcstatus.Status
	switch r := in.into.(type) {
	case *discoveryv3.DiscoveryRequest:
		lists, node, problem = [][]string{r.GetResourceNames(), {r.GetTypeUrl(), r.GetVersionInfo(), r.GetResponseNonce()}}, r.GetNode(), r.GetErrorDetail()
	case *discoveryv3.DeltaDiscoveryRequest:
		lists, node, problem = [][]string{r.GetResourceNamesSubscribe(), r.GetResourceNamesUnsubscribe(), {r.GetTypeUrl(), r.GetResponseNonce()}}, r.GetNode(), r.GetErrorDetail()
	}
	if len(node.GetId()) > w.limits.NodeID || node.GetMetadata() != nil || problem.GetDetails() != nil {
		return errBeyond
	}
	for _, list := range lists {
		for _, name := range list {
			if len(list) > w.limits.Names || len(name) > w.limits.Name {
				return errBeyond
			}
		}
	}
	return nil
}

func prefixed(t testing.TB, requests ...proto.Message) (all []byte) {
	for _, r := range requests {
		data, err := proto.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		all = protowire.AppendBytes(all, data)
	}
	return all
}

// oneLine is a log that checks that its lines are short and contain no control characters.
type oneLine struct {
	t    *testing.T
	most int
}

func (l oneLine) Write(line []byte) (int, error) {
	if text := strings.TrimSuffix(string(line), "\n"); len(text) > l.most || strings.ContainsAny(text, "\n\r\x00\x1b") {
		l.t.Errorf("the log has the line %q", line)
	}
	return len(line), nil
}

// FuzzRequests sends arbitrary requests. The server must accept nothing beyond the limits, name the
// limit that a client exceeds, and hold nothing afterwards.
func FuzzRequests(f *testing.F) {
	node := &corev3.Node{Id: "me", UserAgentName: "agent\x1b"}
	for _, typeURL := range []string{resourcev3.EndpointType, resourcev3.ClusterType, resourcev3.ListenerType, "type.googleapis.com/made.up", ""} {
		f.Add(prefixed(f,
			&discoveryv3.DiscoveryRequest{TypeUrl: typeURL, ResourceNames: []string{"a", "b"}, Node: node},
			&discoveryv3.DiscoveryRequest{TypeUrl: typeURL, ResourceNames: []string{"a"}, ResponseNonce: "1", VersionInfo: "1"},
			&discoveryv3.DiscoveryRequest{TypeUrl: typeURL, ResponseNonce: "1", ErrorDetail: &rpcstatus.Status{Message: "no\n"}}), false)
		f.Add(prefixed(f,
			&discoveryv3.DeltaDiscoveryRequest{TypeUrl: typeURL, ResourceNamesSubscribe: []string{"a", "*"}, Node: node},
			&discoveryv3.DeltaDiscoveryRequest{TypeUrl: typeURL, ResourceNamesUnsubscribe: []string{"a", "x"}, ResponseNonce: "1"}), true)
	}
	f.Add(prefixed(f, &discoveryv3.DiscoveryRequest{TypeUrl: resourcev3.EndpointType, ResourceNames: strings.Split(strings.Repeat("x", 30), "")}), false)
	f.Fuzz(func(t *testing.T, data []byte, incremental bool) {
		limits, err := Limits{Names: 20, Name: 80, NodeID: 30, Types: 4, Logged: 50}.complete()
		if err != nil {
			t.Fatal(err)
		}
		c := newClients(slog.New(slog.NewTextHandler(oneLine{t, 4000}, &slog.HandlerOptions{Level: slog.LevelDebug})), limits)
		c.changed("a", true, time.Now())
		r := newResources(RoundRobin)
		one := []*given{{endpoints: adstest.Cluster("a", "10.0.0.1:1")}}
		if err := errors.Join(r.set(one, nil), r.gate.update(full, one, nil)); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		client := &wire{ctx: ctx, limits: limits, left: data}
		server := &ads{clients: c, gate: r.gate}
		if incremental {
			err = server.DeltaAggregatedResources(&grpc.GenericServerStream[discoveryv3.DeltaDiscoveryRequest, discoveryv3.DeltaDiscoveryResponse]{ServerStream: client})
		} else {
			err = server.StreamAggregatedResources(&grpc.GenericServerStream[discoveryv3.DiscoveryRequest, discoveryv3.DiscoveryResponse]{ServerStream: client})
		}
		if errors.Is(err, errBeyond) || status.Code(err) == codes.ResourceExhausted && !strings.Contains(err.Error(), "(--") {
			t.Errorf("the stream ends with %v", err)
		}
		c.measure(time.Now())
		if c.held != 0 || len(c.streams)+len(c.connections) != 0 {
			t.Errorf("after the stream, %d bytes of %d streams and %d connections are held", c.held, len(c.streams), len(c.connections))
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
		cluster, err := protojson.Marshal(e.given.message())
		if err != nil {
			return // the metadata has a value that JSON does not have, such as NaN
		}
		again, err := json.Marshal(entry{File: e.File, Lost: e.Lost, Cluster: cluster, Config: e.given.config != nil})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := parseEntry(again); err != nil || !got.given.equal(e.given) || got.File != e.File {
			t.Errorf("%s becomes %s, which is %+v, %v", data, again, got, err)
		}
	})
}
