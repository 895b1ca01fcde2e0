package interop

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/xds"

	_ "github.com/understudy-lb/understudy/discovery/eds"
)

// A server restarts without a cache while its file is broken or its volume is not mounted. It must
// not send this to the clients, so that they keep their endpoints and no call fails. When the file
// is valid again, changes must reach the clients.
func TestRestartWithBrokenFileLosesNoCall(t *testing.T) {
	t.Parallel()
	for name, breakFile := range map[string]func(t *testing.T, d *disturbedServer){
		"broken": func(t *testing.T, d *disturbedServer) {
			must(t, os.WriteFile(d.file(), []byte("endpoints: ["), 0o600))
		},
		"beside a good one": func(t *testing.T, d *disturbedServer) {
			must(t, os.WriteFile(d.file(), []byte("endpoints: ["), 0o600))
			write(t, filepath.Join(d.dir, "another.yaml"), fileEndpoint{d.a, 0})
		},
		"not mounted": func(t *testing.T, d *disturbedServer) {
			must(t, os.Rename(d.dir, d.other))
			must(t, os.Mkdir(d.dir, 0o700))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDisturbedServer(t)
			d.server.kill()
			d.flags = []string{"--log-level", "debug"} // without a cache
			d.server = serve(t, d.server.address, d.dir, d.flags...)
			conn := stockChannel(t, d.server.address, "payments")
			callN(t, conn, 10)
			stop := traffic(t, conn, 2)
			breakFile(t, d)
			d.server.kill()
			d.server = serve(t, d.server.address, d.dir, d.flags...)
			d.server.wait(t, "client request")
			if name == "beside a good one" {
				d.server.wait(t, "client ACK") // for the cluster in the other file
			} else {
				d.server.wait(t, "client disconnected") // the server ends the stream, because it has no clusters
			}
			callN(t, conn, 100)
			write(t, d.file(), fileEndpoint{d.b, 0})
			callUntil(t, conn, d.b)
			if n := stop(); n == 0 {
				t.Error("no calls were made during the restart")
			}
		})
	}
}

// If the first of two management servers has no valid file, the client must use the second one.
func TestFallbackFromServerWithoutClusters(t *testing.T) {
	t.Parallel()
	d := newDisturbedServer(t)
	broken := filepath.Join(t.TempDir(), "payments.yaml")
	must(t, os.WriteFile(broken, []byte("endpoints: ["), 0o600))
	emptyServer := serve(t, "127.0.0.1:0", broken)
	server := `{"server_uri": %q, "channel_creds": [{"type": "insecure"}], "server_features": ["xds_v3"]}`
	both := fmt.Appendf(nil, `{"xds_servers": [`+server+`, `+server+`], "node": {"id": "two"}}`, emptyServer.address, d.server.address)
	builder, err := xds.NewXDSResolverWithConfigForTesting(both)
	must(t, err)
	t.Run("stock", func(t *testing.T) {
		t.Parallel()
		callUntil(t, dial(t, "xds:///payments", grpc.WithResolvers(builder)), d.a)
	})
	t.Run("ours", func(t *testing.T) {
		t.Parallel()
		callUntil(t, dial(t, "eds://"+emptyServer.address+","+d.server.address+"/payments"), d.a)
	})
}
