package interop

import (
	"path/filepath"
	"testing"

	"google.golang.org/grpc"
)

// The connection between a client and the management server ends because of its age. The client
// reconnects, no call fails, and later changes reach the client.
func TestConnectionsToServeEnd(t *testing.T) {
	for name, open := range map[string]func(t *testing.T, address string) *grpc.ClientConn{
		"stock": func(t *testing.T, address string) *grpc.ClientConn { return stockChannel(t, address, "shop") },
		"ours":  func(t *testing.T, address string) *grpc.ClientConn { return dial(t, "eds://"+address+"/shop") },
	} {
		t.Run(name, func(t *testing.T) {
			one, other, path := backend(t), backend(t), filepath.Join(t.TempDir(), "shop.yaml")
			write(t, path, fileEndpoint{address: one})
			p := serve(t, "127.0.0.1:0", path, "--max-connection-age=1s")
			conn := open(t, p.address)
			until(t, conn, one)
			for range 3 {
				p.wait(t, "client connected")
				if got := answered(t, conn, 20); got[one] != 20 {
					t.Errorf("20 calls were answered by %v, want only %s", got, one)
				}
			}
			write(t, path, fileEndpoint{address: other})
			until(t, conn, other)
		})
	}
}
