package serve

import (
	"path/filepath"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

const invalidFile = "endpoints: ["

func newRequest(typeURL string, names ...string) *discoveryv3.DiscoveryRequest {
	return &discoveryv3.DiscoveryRequest{TypeUrl: typeURL, ResourceNames: names, Node: &corev3.Node{Id: "me"}}
}

func newACK(r *discoveryv3.DiscoveryResponse, names ...string) *discoveryv3.DiscoveryRequest {
	return &discoveryv3.DiscoveryRequest{TypeUrl: r.GetTypeUrl(), ResourceNames: names, VersionInfo: r.GetVersionInfo(), ResponseNonce: r.GetNonce()}
}

// If no file can be read, or the directory of the files is not mounted yet, no request is answered.
// The stream ends, so that the client tries another server.
func TestNoResponseBeforeContentIsLoaded(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "a.yaml")
	write(t, file, invalidFile)
	for name, path := range map[string]string{"file": file, "directory": filepath.Dir(file), "empty": t.TempDir()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, _ := start(t, Options{Paths: []string{path}, responseTimeout: responseTimeout})
			stream := openStream(t, s, nil)
			send(t, stream, newRequest(listenerType, "a"))
			send(t, stream, newRequest(clusterType))
			send(t, stream, newRequest(endpointType, "a"))
			if r, err := stream.Recv(); status.Code(err) != codes.Unavailable {
				t.Errorf("the answer is %v, %v, want none and the status UNAVAILABLE", r, err)
			}
		})
	}
}

// If a new file is invalid, the name of its cluster is unknown. The server holds back the responses
// that would report this cluster as removed, and sends all other responses.
func TestRequestsForUnknownClustersWait(t *testing.T) {
	t.Parallel()
	dir := makeDir(t, t.TempDir(), "a.yaml")
	write(t, filepath.Join(dir, "b.yaml"), invalidFile)
	s, _ := start(t, Options{Paths: []string{dir}})
	named, everything := openStream(t, s, nil), openStream(t, s, nil)
	for stream, names := range map[adsStream][]string{named: {"a", "b"}, everything: nil} {
		send(t, stream, newRequest(listenerType, names...))
		send(t, stream, newRequest(clusterType, names...))
		send(t, stream, newRequest(endpointType, "a", "b"))
		if r := receive(t, stream); r.GetTypeUrl() != endpointType || len(r.GetResources()) != 1 {
			t.Errorf("of %v the first answer has %d of %s, want the endpoints of a", names, len(r.GetResources()), r.GetTypeUrl())
		}
	}
	if n := len(fetch(t, s, clusterType, "a").GetResources()); n != 1 {
		t.Errorf("%d clusters for a request that names only a, want 1", n)
	}
	write(t, filepath.Join(dir, "b.yaml"), endpoints("1"))
	for _, stream := range []adsStream{named, everything} {
		for got := map[string]int{}; len(got) < 2; {
			r := receive(t, stream)
			if r.GetTypeUrl() == endpointType {
				continue
			}
			if got[r.GetTypeUrl()] = len(r.GetResources()); len(r.GetResources()) != 2 {
				t.Errorf("%d resources of type %s, want those of a and b at once", len(r.GetResources()), r.GetTypeUrl())
			}
		}
	}
}

// A client that has received all resources still gets updates after an invalid file was added.
func TestInvalidNewFileDoesNotDelayUpdates(t *testing.T) {
	t.Parallel()
	dir := makeDir(t, t.TempDir(), "a.yaml")
	s, l := start(t, Options{Paths: []string{dir}})
	stream := openStream(t, s, nil)
	send(t, stream, newRequest(clusterType))
	r := receive(t, stream)
	write(t, filepath.Join(dir, "b.yaml"), invalidFile)
	l.wait(t, "rejected, and not served")
	send(t, stream, newACK(r))
	write(t, filepath.Join(dir, "c.yaml"), endpoints("1"))
	if n := len(receive(t, stream).GetResources()); n != 2 {
		t.Errorf("%d clusters after the edit, want 2", n)
	}
}
