package serve

import (
	"path/filepath"
	"testing"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc/credentials/insecure"
)

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
