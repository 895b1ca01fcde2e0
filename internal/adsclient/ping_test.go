package adsclient

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/test/bufconn"

	"github.com/understudy-lb/understudy/internal/testing/adstest"
)

func (m *manager) cabled() (target Server, cut func(full bool)) {
	var last atomic.Pointer[func(bool)]
	target = m.target()
	target.DialOptions = []grpc.DialOption{grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
		conn, err := m.dial(ctx, address)
		if err != nil {
			return nil, err
		}
		cabled, cut := adstest.Cable(conn)
		last.Store(&cut)
		return cabled, nil
	})}
	return target, func(full bool) { (*last.Load())(full) }
}

// startPinged starts a server that closes connections on which pings are less than minTime apart.
// says returns the server's ping header for each stream, or "" for none.
func startPinged(t *testing.T, minTime time.Duration, says func(stream int) string) (m *manager, target Server, cut func()) {
	m = startManager(t, func(s *adstest.Stream) error {
		if text := says(s.Number); text != "" {
			if err := s.SetHeader(metadata.Pairs("understudy-ping", text)); err != nil {
				return err
			}
		}
		return errors.Join(s.Respond("1", "n", adstest.Cluster("a", "10.0.0.1:1")), s.Drain())
	})
	m.stop()
	m.listener = bufconn.Listen(1 << 20)
	m.server = adstest.Serve(m.listener, m.script, grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: minTime}))
	target, cutIt := m.cabled()
	return m, target, func() { cutIt(false) }
}

// A server that sends the ping header must be pinged every 30 s, so that the client notices within
// 50 s that the server is gone.
func TestServerThatAllowsPings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, target, cut := startPinged(t, 9*time.Second, func(int) string { return "30s" })
		a := new(notes)
		defer Watch(target, Endpoints, "a", a, nil)()
		expect(t, "a", a.take(), "a:1")
		pass(time.Hour)
		if got := m.server.Streams(); got != 2 {
			t.Errorf("the server saw %d streams, want 2", got)
		}
		cut()
		pass(51 * time.Second)
		if got := m.server.Streams(); got != 3 {
			t.Errorf("the server saw %d streams, want 3 after the connection was cut", got)
		}
		expect(t, "a", a.take())
		wantOutages(t, "a", a)
	})
}

// A server without the ping header must be pinged every 5 minutes, even if another server at its
// address sent the header before.
func TestServerThatAllowsPingsNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, target, _ := startPinged(t, 5*time.Minute-time.Second, func(stream int) string {
			if stream != 2 {
				return "30s"
			}
			return ""
		})
		a := new(notes)
		defer Watch(target, Endpoints, "a", a, nil)()
		pass(24 * time.Hour)
		expect(t, "a", a.take(), "a:1")
		if got := m.server.Streams(); got != 3 {
			t.Errorf("the server saw %d streams, want 3: it was pinged too often", got)
		}
	})
}
