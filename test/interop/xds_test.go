package interop

import (
	"fmt"
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

// withBoth runs a test with gRPC-Go's own xDS client and with ours. open opens a channel to the
// cluster shop of the server at address.
func withBoth(t *testing.T, query string, test func(t *testing.T, open func(address string) *grpc.ClientConn)) {
	for name, open := range map[string]func(t *testing.T, address string) *grpc.ClientConn{
		"stock": func(t *testing.T, address string) *grpc.ClientConn { return stockChannel(t, address, "shop") },
		"ours":  func(t *testing.T, address string) *grpc.ClientConn { return dial(t, "eds://"+address+"/shop"+query) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, func(address string) *grpc.ClientConn { return open(t, address) })
		})
	}
}
