package interop

import (
	"fmt"
	"path/filepath"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/xds"
)

func bootstrap(address string) []byte {
	return fmt.Appendf(nil, `{
		"xds_servers": [{"server_uri": %q, "channel_creds": [{"type": "insecure"}], "server_features": ["xds_v3"]}],
		"node": {"id": "interop", "locality": {"region": "r", "zone": "z"}}
	}`, address)
}

func stockChannel(t *testing.T, address, cluster string) *grpc.ClientConn {
	t.Helper()
	builder, err := xds.NewXDSResolverWithConfigForTesting(bootstrap(address))
	if err != nil {
		t.Fatal(err)
	}
	return dial(t, "xds:///"+cluster, grpc.WithResolvers(builder))
}

func dial(t *testing.T, target string, opts ...grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(target, append(opts, grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

func TestStockChannelAgainstServe(t *testing.T) {
	t.Parallel()
	a, b := backend(t), backend(t)
	path := filepath.Join(t.TempDir(), "payments.yaml")
	write(t, path, fileEndpoint{a, 0})
	p := serve(t, "127.0.0.1:0", path, "--log-level", "debug")
	conn := stockChannel(t, p.address, "payments")
	if got := callN(t, conn, 10); got[a] != 10 {
		t.Errorf("10 calls were answered by %v, want %s", got, a)
	}
	write(t, path, fileEndpoint{b, 0})
	callUntil(t, conn, b)
	p.wait(t, "client ACK")
}
