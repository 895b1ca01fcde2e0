package serve

import (
	"context"
	"errors"
	"io"
	"net"
	"path/filepath"
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc/credentials/insecure"
)

func endpointCounts(t *testing.T, r *discoveryv3.DiscoveryResponse) map[string]int {
	t.Helper()
	all := make(map[string]int)
	for _, resource := range r.GetResources() {
		var c endpointv3.ClusterLoadAssignment
		must(t, resource.UnmarshalTo(&c))
		all[c.GetClusterName()] = newStatic(&c).endpointCount()
	}
	return all
}

// requestEndpoints returns a function that requests the endpoints of a cluster, or acknowledges the
// previous response, and then waits for the next response. It returns the number of endpoints.
func requestEndpoints(t *testing.T, stream adsStream, name string) (next func() int) {
	t.Helper()
	request := &discoveryv3.DiscoveryRequest{TypeUrl: endpointType, ResourceNames: []string{name}, Node: &corev3.Node{Id: "me"}}
	return func() int {
		t.Helper()
		send(t, stream, request)
		r := receive(t, stream)
		request = &discoveryv3.DiscoveryRequest{TypeUrl: endpointType, ResourceNames: []string{name}, VersionInfo: r.GetVersionInfo(), ResponseNonce: r.GetNonce()}
		return endpointCounts(t, r)[name]
	}
}

func fetch(t *testing.T, s *Server, typeURL string, names ...string) *discoveryv3.DiscoveryResponse {
	t.Helper()
	stream := openStream(t, s, nil)
	send(t, stream, &discoveryv3.DiscoveryRequest{TypeUrl: typeURL, ResourceNames: names, Node: &corev3.Node{Id: "me"}})
	return receive(t, stream)
}

func TestFilesAreAddedAndRemoved(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a.yaml"), endpoints("1"))
	write(t, filepath.Join(dir, "notes.txt"), "not of endpoints")
	write(t, filepath.Join(dir, ".hidden.yaml"), "not of endpoints")
	s, l := start(t, Options{Paths: []string{dir}})
	next := requestEndpoints(t, openStream(t, s, nil), "b")
	if got := next(); got != 0 {
		t.Errorf("%d endpoints of a cluster without a file", got)
	}
	write(t, filepath.Join(dir, "b.json"), `{"endpoints":[{"lb_endpoints":[{"endpoint":{"address":{"socket_address":{"address":"127.0.0.1","port_value":1}}}}]}]}`)
	if got := next(); got != 1 {
		t.Errorf("%d endpoints of a cluster whose file has come, want 1", got)
	}
	write(t, filepath.Join(dir, "c.yaml"), "clusterName: a\n"+endpoints("9"))
	if problem, _ := l.wait(t, "rejected, and not served")["error"].(string); !strings.Contains(problem, `c.yaml: cluster "a" is already in `) {
		t.Errorf("a second file of cluster a: %q", problem)
	}
	remove(t, filepath.Join(dir, "a.yaml"))
	if line := l.wait(t, "cluster served"); line["cluster"] != "a" || line["file"] != filepath.Join(dir, "c.yaml") {
		t.Errorf("once a.yaml has gone, c.yaml is not served as cluster a, but %v", line)
	}
	remove(t, filepath.Join(dir, "b.json"))
	if line := l.wait(t, "cluster removed"); line["cluster"] != "b" {
		t.Errorf("without a delay, b is not removed with its file, but %v", line)
	}
	for _, typeURL := range []string{listenerType, clusterType} {
		if n := len(fetch(t, s, typeURL, "a", "b").GetResources()); n != 1 {
			t.Errorf("%d resources of type %s for a and b, want that of a alone", n, typeURL)
		}
	}
}

func TestStopEndsStreams(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.yaml")
	write(t, path, endpoints("1"))
	s, _ := start(t, Options{Paths: []string{path}})
	stream := openStream(t, s, nil)
	send(t, stream, &discoveryv3.DiscoveryRequest{TypeUrl: endpointType, ResourceNames: []string{"a"}})
	receive(t, stream)
	s.Stop()
	s.Stop()
	if _, err := stream.Recv(); !errors.Is(err, io.EOF) {
		t.Errorf("the stream ends with %v, want the status OK", err)
	}
	if err := s.err; err != nil {
		t.Errorf("the server ends with %v", err)
	}
}

func TestStartErrors(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	good := filepath.Join(dir, "good.yaml")
	write(t, good, endpoints("1"))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer listener.Close()
	for _, test := range []struct {
		o    Options
		want string
	}{
		{Options{}, "nothing to serve"},
		{Options{Paths: []string{filepath.Join(dir, "none")}}, "none: no such file"},
		{Options{Paths: []string{good}, Policy: "maglev"}, `policy "maglev": want understudy_weighted_round_robin or round_robin`},
		{Options{Paths: []string{good}, RemovalDelay: -1}, "removal delay -1ns: want 0 or more"},
		{Options{Paths: []string{good}, Cache: good}, "cache: mkdir " + good + ": not a directory"},
		{Options{Paths: []string{good}, Listen: "127.0.0.1"}, `address "127.0.0.1": want host:port, as in 127.0.0.1:18000`},
		{Options{Paths: []string{good}, Metrics: listener.Addr().String()}, "metrics: listen tcp"},
		{Options{Paths: []string{good}, Metrics: "a:b:c"}, "want host:port, or a port on loopback"},
		{Options{Paths: []string{good}, Listen: ":0"}, "not on loopback"},
		{Options{Paths: []string{good}, Listen: "0.0.0.0:0"}, "want TLS (--tls-cert, --tls-key), or --insecure"},
		{Options{Paths: []string{good}, Listen: listener.Addr().String()}, "address already in use"},
		{Options{Paths: []string{good}, TLS: TLS{Certificate: "x"}}, "both a certificate (--tls-cert) and its key"},
		{Options{Paths: []string{good}, TLS: TLS{Certificate: "x", Key: "y"}}, "certificate: open x"},
	} {
		s, err := Start(context.Background(), test.o)
		if err == nil {
			s.Stop()
		}
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%+v: %v, want %q", test.o, err, test.want)
		}
	}
	s, err := Start(context.Background(), Options{Paths: []string{good}, Listen: ":0", Insecure: true})
	must(t, err)
	s.Stop()
}

// Kubernetes updates the files of a ConfigMap volume by replacing a symbolic link to their
// directory. The server notices this.
func TestConfigMapSwap(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(makeDir(t, filepath.Join(dir, "..v0")), "a.yaml"), endpoints("1"))
	write(t, filepath.Join(makeDir(t, filepath.Join(dir, "..v1")), "a.yaml"), endpoints("1", "2"))
	symlink(t, "..v0", filepath.Join(dir, "..data"))
	symlink(t, filepath.Join("..data", "a.yaml"), filepath.Join(dir, "a.yaml"))
	s, _ := start(t, Options{Paths: []string{dir}})
	next := requestEndpoints(t, openStream(t, s, nil), "a")
	if got := next(); got != 1 {
		t.Errorf("%d endpoints at first, want 1", got)
	}
	symlink(t, "..v1", filepath.Join(dir, "..data"))
	if got := next(); got != 2 {
		t.Errorf("%d endpoints after the swap, want 2", got)
	}
}

// The server allows a client to ping every 30 s. It says so in a header that comes before the first
// response.
func TestPingHeader(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a.yaml"), endpoints("1"))
	s, _ := start(t, Options{Paths: []string{dir}})
	stream := openStream(t, s, insecure.NewCredentials())
	send(t, stream, &discoveryv3.DiscoveryRequest{TypeUrl: endpointType, ResourceNames: []string{"a"}})
	receive(t, stream)
	header, err := stream.Header()
	must(t, err)
	if got := header.Get("understudy-ping"); len(got) != 1 || got[0] != "30s" {
		t.Errorf("the header is %q, want 30s", got)
	}
}
