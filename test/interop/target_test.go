package interop

import (
	"path/filepath"
	"testing"

	"google.golang.org/grpc"

	"github.com/understudy-lb/understudy/internal/testing/given"
)

// "understudy serve" follows a target with two discovery mechanisms. Changes of both mechanisms
// must reach gRPC's own xDS client and ours.
func TestServeFollowsTarget(t *testing.T) {
	t.Parallel()
	withBoth(t, "", func(t *testing.T, open func(address string) *grpc.ClientConn) {
		near, far, dir := backend(t), backend(t), t.TempDir()
		east, west := filepath.Join(dir, "east.yaml"), filepath.Join(dir, "west.yaml")
		write(t, east, fileEndpoint{address: near})
		write(t, west, fileEndpoint{address: far})
		p := serve(t, "127.0.0.1:0", "--from=shop=failover:///file:%2F%2F"+east+",file:%2F%2F"+west)
		conn := open(p.address)
		callUntil(t, conn, near)
		write(t, east, fileEndpoint{address: given.Address(t)})
		callUntil(t, conn, far)
		write(t, east, fileEndpoint{address: near})
		callUntil(t, conn, near)
		if got := callN(t, conn, 20); got[near] != 20 {
			t.Errorf("20 calls were answered by %v, want the first mechanism", got)
		}
		p.kill()
		if got := callN(t, conn, 20); got[near] != 20 {
			t.Errorf("without the management server 20 calls were answered by %v, want the first mechanism", got)
		}
	})
}
