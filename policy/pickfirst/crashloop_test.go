package pickfirst

import (
	"net"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
)

type closingListener struct {
	net.Listener
	lost    chan struct{}
	healthy atomic.Bool
}

func (d *closingListener) Accept() (net.Conn, error) {
	conn, err := d.Listener.Accept()
	if err != nil || d.healthy.Load() {
		return conn, err
	}
	time.AfterFunc(50*time.Millisecond, func() {
		conn.Close()
		d.lost <- struct{}{}
	})
	return conn, nil
}

// A server first closes all connections after the handshake, and later works. Calls must then
// succeed. TestChannelBacksOffInCrashLoop checks the delays.
func TestCrashLoopOnRealSockets(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", net.JoinHostPort(loopback(), "0"))
	if err != nil {
		t.Fatal(err)
	}
	d := &closingListener{Listener: listener, lost: make(chan struct{}, 1000)}
	server := grpc.NewServer()
	healthpb.RegisterHealthServer(server, health.NewServer())
	go server.Serve(d)
	defer server.Stop()
	cc, _ := dial(t, []string{listener.Addr().String()})
	call := func() error {
		_, err := call(cc, grpc.WaitForReady(true))
		return err
	}
	for range 4 {
		for lost := false; !lost; {
			_ = call()
			select {
			case <-d.lost:
				lost = true
			default:
			}
		}
	}
	d.healthy.Store(true)
	for end := time.Now().Add(time.Minute); ; {
		err := call()
		if err == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("calls fail although the server is well: %v", err)
		}
	}
}
