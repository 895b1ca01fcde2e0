package interop

import (
	"path/filepath"
	"testing"

	"google.golang.org/grpc"
)

// The management server closes a client's connection because of its age. The client must reconnect,
// no call may fail, and later changes must reach the client.
func TestServeEndsOldConnections(t *testing.T) {
	t.Parallel()
	withBoth(t, "", func(t *testing.T, open func(address string) *grpc.ClientConn) {
		one, other, path := backend(t), backend(t), filepath.Join(t.TempDir(), "shop.yaml")
		write(t, path, fileEndpoint{address: one})
		p := serve(t, "127.0.0.1:0", path, "--max-connection-age=1s")
		conn := open(p.address)
		callUntil(t, conn, one)
		for range 2 {
			p.wait(t, "client connected")
			if got := callN(t, conn, 20); got[one] != 20 {
				t.Errorf("20 calls were answered by %v, want only %s", got, one)
			}
		}
		write(t, path, fileEndpoint{address: other})
		callUntil(t, conn, other)
	})
}
