package serve

import (
	"context"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/test/bufconn"
)

// A client that pings as often as gRPC lets it keeps its connection.
func TestFrequentPingsAreAllowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		listener := bufconn.Listen(1 << 10)
		server := grpc.NewServer(grpc.KeepaliveEnforcementPolicy(pings))
		go server.Serve(listener)
		defer server.Stop()
		cc, err := grpc.NewClient("passthrough:///serve",
			grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }),
			grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 10 * time.Second, PermitWithoutStream: true}))
		if err != nil {
			t.Fatal(err)
		}
		defer cc.Close()
		cc.Connect()
		synctest.Wait()
		if got := cc.GetState(); got != connectivity.Ready {
			t.Fatalf("the channel is %v, want READY", got)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		if cc.WaitForStateChange(ctx, connectivity.Ready) {
			t.Errorf("the channel became %v, since the server does not like its pings", cc.GetState())
		}
	})
}
