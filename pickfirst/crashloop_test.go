package pickfirst

import (
	"net"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
)

// dying is a listener that closes each connection soon after it was accepted.
type dying struct {
	net.Listener
	accepted, ended chan time.Time
}

func (d *dying) Accept() (net.Conn, error) {
	conn, err := d.Listener.Accept()
	if err != nil {
		return nil, err
	}
	d.accepted <- time.Now()
	time.AfterFunc(50*time.Millisecond, func() {
		d.ended <- time.Now()
		conn.Close()
	})
	return conn, nil
}

// If a server closes connections after the handshake, the second attempt comes at once. Later ones
// have gRPC's backoff, however many calls there are.
func TestCrashLoopOnRealSockets(t *testing.T) {
	listener, err := net.Listen("tcp", net.JoinHostPort(loopback(), "0"))
	if err != nil {
		t.Fatal(err)
	}
	d := &dying{listener, make(chan time.Time, 1000), make(chan time.Time, 1000)}
	server := grpc.NewServer()
	healthpb.RegisterHealthServer(server, health.NewServer())
	go server.Serve(d)
	defer server.Stop()
	cc, _ := dial(t, []string{listener.Addr().String()})
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
				_, _ = call(cc, grpc.WaitForReady(true))
			}
		}
	}()
	defer func() {
		close(stop)
		cc.Close()
		<-stopped
	}()
	<-d.accepted
	for _, least := range []time.Duration{0, 800 * time.Millisecond, 1280 * time.Millisecond} {
		ended := <-d.ended
		if gap := (<-d.accepted).Sub(ended); gap < least {
			t.Errorf("connected again after %v, want at least %v", gap, least)
		}
	}
}
