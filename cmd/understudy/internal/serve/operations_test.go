package serve

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/understudy-lb/understudy/internal/testing/testcert"
	"github.com/understudy-lb/understudy/policy/weightedroundrobin"
)

func TestHealth(t *testing.T) {
	s, _ := start(t, Options{Paths: []string{makeDir(t, t.TempDir(), "a.yaml")}})
	conn, err := grpc.NewClient(s.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	must(t, err)
	defer conn.Close()
	ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
	defer cancel()
	for _, service := range []string{"", "envoy.service.discovery.v3.AggregatedDiscoveryService"} {
		answer, err := healthpb.NewHealthClient(conn).Check(ctx, &healthpb.HealthCheckRequest{Service: service})
		if err != nil || answer.GetStatus() != healthpb.HealthCheckResponse_SERVING {
			t.Errorf("service %q: %v, %v, want SERVING", service, answer, err)
		}
	}
}

func scrape(t *testing.T, s *Server) string {
	t.Helper()
	response, err := http.Get("http://" + s.metricsListener.Addr().String() + "/metrics")
	must(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	must(t, err)
	http.DefaultClient.CloseIdleConnections()
	return string(body)
}

func expectMetrics(t *testing.T, s *Server, want ...string) {
	t.Helper()
	got := scrape(t, s)
	for _, line := range want {
		if !strings.Contains(got, "\n"+line+"\n") {
			t.Errorf("no line %s in:\n%s", line, got)
		}
	}
}

// What clients do is logged and counted.
func TestClientsAreLoggedAndCounted(t *testing.T) {
	t.Parallel()
	dir := makeDir(t, t.TempDir(), "a.yaml", "b.yaml")
	s, l := start(t, Options{Paths: []string{dir}, Metrics: "0"})
	wantLine := func(msg string, fields map[string]any) {
		t.Helper()
		line := l.wait(t, msg)
		for name, want := range fields {
			if line[name] != want {
				t.Errorf("logged %v, want %s %v", line, name, want)
			}
		}
	}
	if host, _, _ := net.SplitHostPort(s.metricsListener.Addr().String()); host != "127.0.0.1" {
		t.Errorf("metrics without a host are served at %s, want loopback", host)
	}
	expectMetrics(t, s, "understudy_serve_clients 0", "understudy_serve_lag_seconds 0")
	stream := openStream(t, s, nil)
	send(t, stream, &discoveryv3.DiscoveryRequest{TypeUrl: endpointType, ResourceNames: []string{"a"}, Node: &corev3.Node{Id: "me", UserAgentName: "test"}})
	wantLine("client connected", map[string]any{"node": "me", "agent": "test"})
	wantLine("client request", map[string]any{"type": "ClusterLoadAssignment"})
	r := receive(t, stream)
	answer := newACK(r, "a")
	send(t, stream, answer)
	wantLine("client ACK", map[string]any{"version": r.GetVersionInfo()})
	expectMetrics(t, s, "understudy_serve_clients 1", "understudy_serve_acks_total 1", "understudy_serve_lag_seconds 0")
	write(t, filepath.Join(dir, "a.yaml"), endpoints("1", "2"))
	answer.ResponseNonce = receive(t, stream).GetNonce()
	answer.ErrorDetail = &status.Status{Message: "I do not like it"}
	send(t, stream, answer)
	wantLine("client NACK", map[string]any{"reason": "I do not like it", "level": "WARN"})
	expectMetrics(t, s, "understudy_serve_nacks_total 1")
	if strings.Contains(scrape(t, s), "lag_seconds 0\n") {
		t.Error("a client that has rejected the endpoints does not lag behind")
	}
	must(t, stream.CloseSend())
	l.wait(t, "client disconnected")
}

func TestFailedHandshakesAreLogged(t *testing.T) {
	a := testcert.New(t)
	pair := a.Pair("server", "127.0.0.1")
	s, l := start(t, Options{Paths: []string{makeDir(t, t.TempDir(), "a.yaml")}, TLS: TLS{Certificate: pair.Certificate, Key: pair.Key, ClientCA: a.File()}})
	conn, err := net.Dial("tcp", s.Addr().String())
	must(t, err)
	defer conn.Close()
	_, err = conn.Write([]byte("GET / HTTP/1.1\r\n\r\n"))
	must(t, err)
	line := l.wait(t, "TLS handshake failed")
	if line["client"] != conn.LocalAddr().String() || line["level"] != "WARN" || !strings.Contains(fmt.Sprint(line["error"]), "TLS handshake") {
		t.Errorf("the log says %v, want the client and the reason", line)
	}
}

func TestDocumentShowsCluster(t *testing.T) {
	page, err := os.ReadFile("../../../../docs/xds.md")
	must(t, err)
	_, rest, _ := strings.Cut(string(page), "<!-- tested by test/interop/custompolicy_test.go -->\n```json\n")
	snippet, _, _ := strings.Cut(rest, "```")
	var shown clusterv3.Cluster
	must(t, protojson.Unmarshal([]byte(snippet), &shown))
	sent := clusterFor(newStatic(&endpointv3.ClusterLoadAssignment{ClusterName: "payments"}), weightedroundrobin.Name)
	if !proto.Equal(&shown, sent) {
		t.Errorf("docs/xds.md shows %v, want %v", &shown, sent)
	}
}
