package serve

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// drain reads until the stream ends. It returns the number of responses and the final status.
func drain(stream interface{ RecvMsg(any) error }) (responses int, end *grpcstatus.Status) {
	for {
		if err := stream.RecvMsg(new(discoveryv3.DiscoveryResponse)); err != nil {
			return responses, grpcstatus.Convert(err)
		}
		responses++
	}
}

func expectLimitError(t *testing.T, what string, stream interface{ RecvMsg(any) error }, limit string) {
	t.Helper()
	if _, end := drain(stream); end.Code() != codes.ResourceExhausted || !strings.Contains(end.Message(), limit) {
		t.Errorf("%s: the stream ends with %v: %q, want ResourceExhausted and %q", what, end.Code(), end.Message(), limit)
	}
}

// A stream may request at most 16 resource types. Each type that is not served gets one empty
// response.
func TestUnknownTypesAreLimited(t *testing.T) {
	s, l := start(t, Options{Paths: []string{makeDir(t, t.TempDir(), "a.yaml")}, Metrics: "0"})
	stream := openStream(t, s, nil)
	for i := range 17 {
		if stream.Send(&discoveryv3.DiscoveryRequest{TypeUrl: fmt.Sprint("type.googleapis.com/made.up", i)}) != nil {
			break
		}
	}
	if n, end := drain(stream); n != 16 || end.Code() != codes.ResourceExhausted || !strings.Contains(end.Message(), "want at most 16 (max-types)") {
		t.Errorf("after %d responses the stream ends with %v: %q", n, end.Code(), end.Message())
	}
	if line := l.wait(t, "client refused"); line["level"] != "WARN" || !strings.Contains(line["error"].(string), "17 types on a stream") {
		t.Errorf("the log says %v", line)
	}
	expectServed(t, s, "while another client makes up types", map[string]int{"a": 1})
	expectMetrics(t, s, `understudy_serve_refused_total{limit="max-types"} 1`)
}

// A request for a type that is not served gets one empty response. Other types are still served on
// the same stream.
func TestTypeIsNotServed(t *testing.T) {
	s, l := start(t, Options{Paths: []string{makeDir(t, t.TempDir(), "a.yaml")}})
	stream := openStream(t, s, nil)
	send(t, stream, &discoveryv3.DiscoveryRequest{TypeUrl: secretType, ResourceNames: []string{"s"}, Node: &corev3.Node{Id: "me"}})
	r := receive(t, stream)
	if r.GetTypeUrl() != secretType || len(r.GetResources()) != 0 || r.GetVersionInfo() == "" || r.GetNonce() == "" {
		t.Errorf("a type that is not served is answered by %v", r)
	}
	send(t, stream, &discoveryv3.DiscoveryRequest{TypeUrl: secretType, ResponseNonce: r.GetNonce(), ErrorDetail: &status.Status{Message: "missing"}})
	if line := l.wait(t, "client NACK"); line["type"] != "Secret" || line["reason"] != "missing" {
		t.Errorf("logged %v", line)
	}
	if got := requestEndpoints(t, stream, "a")(); got != 1 {
		t.Errorf("the next response has %d endpoints, want those that were asked for then", got)
	}
}

func sendNACK(t *testing.T, stream adsStream, r *discoveryv3.DiscoveryResponse, version, reason string, names ...string) {
	t.Helper()
	send(t, stream, &discoveryv3.DiscoveryRequest{
		TypeUrl: r.GetTypeUrl(), ResourceNames: names, VersionInfo: version, ResponseNonce: r.GetNonce(), ErrorDetail: &status.Status{Message: reason},
	})
}

// A rejected response is not sent again until its content changes. This is also true for the first
// response of a stream, and if the client has accepted a version from an earlier server.
func TestRejectedResponseIsNotSentAgain(t *testing.T) {
	t.Parallel()
	for _, accepted := range []string{"", "of-an-earlier-server-7"} {
		for _, typeURL := range []string{clusterType, listenerType, endpointType} {
			dir := makeDir(t, t.TempDir(), "a.yaml")
			s, l := start(t, Options{Paths: []string{dir}})
			stream := openStream(t, s, nil)
			send(t, stream, &discoveryv3.DiscoveryRequest{TypeUrl: typeURL, ResourceNames: []string{"a", "b"}, VersionInfo: accepted, Node: &corev3.Node{Id: "me"}})
			first := receive(t, stream)
			sendNACK(t, stream, first, accepted, "I do not like it", "a", "b")
			l.wait(t, "client NACK")
			sendNACK(t, stream, first, accepted, "nor now", "a", "b", "c")
			l.wait(t, "client request")
			write(t, filepath.Join(dir, "b.yaml"), endpoints("1"))
			next := receive(t, stream)
			names := make(map[string]bool)
			for _, resource := range next.GetResources() {
				var named interface{ GetName() string } = new(clusterv3.Cluster)
				switch typeURL {
				case listenerType:
					named = new(listenerv3.Listener)
				case endpointType:
					var c endpointv3.ClusterLoadAssignment
					must(t, resource.UnmarshalTo(&c))
					names[c.GetClusterName()] = true
					continue
				}
				must(t, resource.UnmarshalTo(named.(proto.Message)))
				names[named.GetName()] = true
			}
			if !names["b"] || next.GetVersionInfo() == first.GetVersionInfo() {
				t.Errorf("version %q of %s was rejected, and then came %v in version %q", first.GetVersionInfo(), typeURL, names, next.GetVersionInfo())
			}
		}
	}
}

// If a client rejects every version for the same reason, only the first rejection is logged. The
// other rejections are counted.
func TestRepeatedRejections(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a.yaml")
	write(t, path, endpoints("1"))
	s, l := start(t, Options{Paths: []string{path}, Metrics: "0"})
	stream := openStream(t, s, nil)
	send(t, stream, &discoveryv3.DiscoveryRequest{TypeUrl: endpointType, ResourceNames: []string{"a"}, Node: &corev3.Node{Id: "me"}})
	ports := []string{"1"}
	for range 3 {
		r := receive(t, stream)
		sendNACK(t, stream, r, "", "I do not like it", "a")
		sendNACK(t, stream, r, "", "I said so", "a") // a second NACK for the same response, which is not counted
		ports = append(ports, fmt.Sprint(len(ports)+1))
		write(t, path, endpoints(ports...))
	}
	sendNACK(t, stream, receive(t, stream), "", "I do not like that either", "a")
	for _, want := range []string{"I do not like it", "I do not like that either"} {
		if line := l.wait(t, "client NACK"); line["reason"] != want {
			t.Errorf("logged %v, want the reason %q", line, want)
		}
	}
	expectMetrics(t, s, "understudy_serve_nacks_total 4")
}
