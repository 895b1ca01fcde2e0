package serve

import (
	"context"
	"path/filepath"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
)

const broken = "endpoints: ["

func wish(typeURL string, names ...string) *discoveryv3.DiscoveryRequest {
	return &discoveryv3.DiscoveryRequest{TypeUrl: typeURL, ResourceNames: names, Node: &corev3.Node{Id: "me"}}
}

func accept(r *discoveryv3.DiscoveryResponse, names ...string) *discoveryv3.DiscoveryRequest {
	return &discoveryv3.DiscoveryRequest{TypeUrl: r.GetTypeUrl(), ResourceNames: names, VersionInfo: r.GetVersionInfo(), ResponseNonce: r.GetNonce()}
}

// If no file can be read, or the directory of the files is not mounted yet, no request is answered.
// The stream ends, so that the client tries another server.
func TestNothingIsAnsweredWhileNothingWasLoaded(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a.yaml")
	write(t, file, broken)
	for name, path := range map[string]string{"file": file, "directory": filepath.Dir(file), "empty": t.TempDir()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, _ := start(t, Options{Paths: []string{path}, silence: silence})
			stream := open(t, s, nil)
			send(t, stream, wish(resourcev3.ListenerType, "a"))
			send(t, stream, wish(resourcev3.ClusterType))
			send(t, stream, wish(resourcev3.EndpointType, "a"))
			if r, err := stream.Recv(); status.Code(err) != codes.Unavailable {
				t.Errorf("the answer is %v, %v, want none and the status UNAVAILABLE", r, err)
			}
		})
	}
}

// A new file is broken, so its cluster's name is unknown. The server holds back the responses that
// would report that cluster as removed, and sends all others.
func TestRequestsForWhatIsUnknownWait(t *testing.T) {
	dir := directory(t, t.TempDir(), "a.yaml")
	write(t, filepath.Join(dir, "b.yaml"), broken)
	s, _ := start(t, Options{Paths: []string{dir}})
	named, everything := open(t, s, nil), open(t, s, nil)
	for stream, names := range map[adsStream][]string{named: {"a", "b"}, everything: nil} {
		send(t, stream, wish(resourcev3.ListenerType, names...))
		send(t, stream, wish(resourcev3.ClusterType, names...))
		send(t, stream, wish(resourcev3.EndpointType, "a", "b"))
		if r := receive(t, stream); r.GetTypeUrl() != resourcev3.EndpointType || len(r.GetResources()) != 1 {
			t.Errorf("of %v the first answer has %d of %s, want the endpoints of a", names, len(r.GetResources()), r.GetTypeUrl())
		}
	}
	if n := len(first(t, s, resourcev3.ClusterType, "a").GetResources()); n != 1 {
		t.Errorf("%d clusters for a request that names only a, want 1", n)
	}
	write(t, filepath.Join(dir, "b.yaml"), endpoints("1"))
	for _, stream := range []adsStream{named, everything} {
		for got := map[string]int{}; len(got) < 2; {
			r := receive(t, stream)
			if r.GetTypeUrl() == resourcev3.EndpointType {
				continue
			}
			if got[r.GetTypeUrl()] = len(r.GetResources()); len(r.GetResources()) != 2 {
				t.Errorf("%d resources of type %s, want those of a and b at once", len(r.GetResources()), r.GetTypeUrl())
			}
		}
	}
}

// In the incremental variant, a response reports each requested name that does not exist as
// removed, even for endpoints. The server therefore holds these responses back, too.
func TestIncrementalRequestsForWhatIsUnknownWait(t *testing.T) {
	dir := directory(t, t.TempDir(), "a.yaml")
	write(t, filepath.Join(dir, "b.yaml"), broken)
	s, _ := start(t, Options{Paths: []string{dir}})
	conn, err := grpc.NewClient(s.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	must(t, err)
	defer conn.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	stream, err := discoveryv3.NewAggregatedDiscoveryServiceClient(conn).DeltaAggregatedResources(ctx)
	must(t, err)
	must(t, stream.Send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: resourcev3.EndpointType, ResourceNamesSubscribe: []string{"b"}, InitialResourceVersions: map[string]string{"b": "of another server"}, Node: &corev3.Node{Id: "me"}}))
	must(t, stream.Send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: resourcev3.ClusterType, ResourceNamesSubscribe: []string{"a"}}))
	r, err := stream.Recv()
	must(t, err)
	if r.GetTypeUrl() != resourcev3.ClusterType || len(r.GetResources()) != 1 {
		t.Errorf("the first answer is %v, want cluster a", r)
	}
	write(t, filepath.Join(dir, "b.yaml"), endpoints("1"))
	r, err = stream.Recv()
	must(t, err)
	if r.GetTypeUrl() != resourcev3.EndpointType || len(r.GetResources()) != 1 || len(r.GetRemovedResources()) != 0 {
		t.Errorf("the answer is %v, want the endpoints of b", r)
	}
}

// A client that has received all resources still gets updates after another file has broken.
func TestANewBrokenFileHoldsNoEditUp(t *testing.T) {
	dir := directory(t, t.TempDir(), "a.yaml")
	s, l := start(t, Options{Paths: []string{dir}})
	stream := open(t, s, nil)
	send(t, stream, wish(resourcev3.ClusterType))
	r := receive(t, stream)
	write(t, filepath.Join(dir, "b.yaml"), broken)
	l.wait(t, "rejected, and not served")
	send(t, stream, accept(r))
	write(t, filepath.Join(dir, "c.yaml"), endpoints("1"))
	if n := len(receive(t, stream).GetResources()); n != 2 {
		t.Errorf("%d clusters after the edit, want 2", n)
	}
}
