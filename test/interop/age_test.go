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
	for name, open := range map[string]func(t *testing.T, address string) *grpc.ClientConn{
		"stock": func(t *testing.T, address string) *grpc.ClientConn { return stockChannel(t, address, "shop") },
		"ours":  func(t *testing.T, address string) *grpc.ClientConn { return dial(t, "eds://"+address+"/shop") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			one, other, path := backend(t), backend(t), filepath.Join(t.TempDir(), "shop.yaml")
			write(t, path, fileEndpoint{address: one})
			p := serve(t, "127.0.0.1:0", path, "--max-connection-age=1s")
			conn := open(t, p.address)
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
}
