package pickfirst

import (
	"fmt"
	"net"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
)

// unresponsiveAddress returns a loopback address that does not respond. The backlog of its listener
// is full, so the kernel drops new connections.
func unresponsiveAddress(t *testing.T) string {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { syscall.Close(fd) })
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Listen(fd, 0); err != nil {
		t.Fatal(err)
	}
	name, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	address := fmt.Sprintf("127.0.0.1:%d", name.(*syscall.SockaddrInet4).Port)
	for range 10 {
		conn, err := net.DialTimeout("tcp", address, 200*time.Millisecond)
		if err != nil {
			return address
		}
		t.Cleanup(func() { conn.Close() })
	}
	t.Fatal("the backlog does not fill")
	return ""
}

// The first address does not respond. The policy must try the next one after AttemptDelay, and not
// only after the connect timeout.
func TestChannelSkipsUnresponsiveAddress(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server, done := serve(listener)
	defer func() {
		server.Stop()
		<-done
	}()
	good := listener.Addr().String()
	noTimeout := grpc.ConnectParams{Backoff: backoff.DefaultConfig, MinConnectTimeout: time.Hour}
	cc, s := dial(t, []string{unresponsiveAddress(t), good}, grpc.WithConnectParams(noTimeout))
	start := time.Now()
	wantCall(t, cc, good)
	if took := time.Since(start); took < 250*time.Millisecond {
		t.Errorf("the first call took %v, want at least 250ms", took)
	}
	if got, _ := s.published(); got != "CONNECTING READY" {
		t.Errorf("published %s, want CONNECTING READY", got)
	}
}
