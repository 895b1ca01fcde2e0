package eds

import (
	"context"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"

	"github.com/understudy-lb/understudy/internal/testing/adstest"
)

// A channel that leaves idle mode while its management server is down must use the endpoints that
// the server last confirmed.
func TestServerIsDownAfterIdle(t *testing.T) {
	address := backend(t)
	l := listen(t)
	server := adstest.Serve(l, func(s *adstest.Stream) error {
		if _, err := s.Recv(); err != nil {
			return err
		}
		if err := s.Respond("1", "n", adstest.Cluster("c", address)); err != nil {
			return err
		}
		return s.Drain()
	})
	c := newTraffic(t, "eds://"+l.Addr().String()+"/c", grpc.WithIdleTimeout(100*time.Millisecond))
	c.wantAllCallsTo(address, 1)
	server.Stop()
	awaitIdle(t, c.conn)
	c.wantAllCallsTo(address, 1)
	if logged.Count(l.Addr().String(), "the endpoints that were confirmed") == 0 {
		t.Error("the log does not report that old endpoints are used")
	}
}

func awaitIdle(t *testing.T, conn *grpc.ClientConn) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	for state := conn.GetState(); state != connectivity.Idle; state = conn.GetState() {
		if !conn.WaitForStateChange(ctx, state) {
			t.Fatalf("the channel is %v, want IDLE", state)
		}
	}
}
