package file

import (
	"net"
	"path/filepath"
	"testing"

	"github.com/understudy-lb/understudy/internal/envoy/clusterfile"
	"github.com/understudy-lb/understudy/internal/testing/adstest"
)

// For an EDS cluster in a file, the client must request only the endpoints from the server. It must
// not request the Cluster.
func TestEDSCluster(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := adstest.Serve(listener, func(s *adstest.Stream) error {
		for {
			request, err := s.Recv()
			if err != nil {
				return err
			}
			if request.GetTypeUrl() == adstest.EndpointsURL && request.GetResponseNonce() == "" {
				if err := s.Respond("1", "n", adstest.Cluster("shop", "10.0.0.7:1")); err != nil {
					return err
				}
			}
		}
	})
	defer server.Stop()
	bootstrap := filepath.Join(t.TempDir(), "bootstrap.json")
	write(t, bootstrap, `{"xds_servers": [{"server_uri": "`+listener.Addr().String()+`", "channel_creds": [{"type": "insecure"}]}]}`)
	t.Setenv("GRPC_XDS_BOOTSTRAP", bootstrap)
	path := newPath(t)
	write(t, path, clustersFile("- {name: shop, type: EDS}\n"))
	if got, want := watchFile(t, path).next(t), `10.0.0.7:1["shop/child0" "region/zone"]`; got != want {
		t.Errorf("state = %s, want %s", got, want)
	}
}

func TestFileNameWithInvalidUTF8(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "caf\xe9.yaml")
	write(t, path, onePort(1))
	channel := watchFile(t, path)
	channel.expect(t, 1)
	replace(t, path, onePort(2))
	channel.expect(t, 2)
	doc, err := clusterfile.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := doc.Endpoints.GetClusterName(), "caf\ufffd"; got != want {
		t.Errorf("the cluster is called %q, want %q, which is text", got, want)
	}
}
