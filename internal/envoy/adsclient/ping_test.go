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

func (m *manager) withCable() (target Server, cut func(full bool)) {
	var last atomic.Pointer[func(bool)]
	target = m.serverConfig()
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

// startPingServer starts a server that closes connections on which pings are less than minTime
// apart. pingHeaderFor returns the value of the ping header that the server sends on a stream, or
// "" if it sends no such header.
func startPingServer(t *testing.T, minTime time.Duration, pingHeaderFor func(stream int) string) (m *manager, target Server, cut func()) {
	m = startManager(t, func(s *adstest.Stream) error {
		if text := pingHeaderFor(s.Number); text != "" {
			if err := s.SetHeader(metadata.Pairs("understudy-ping", text)); err != nil {
				return err
			}
		}
		return errors.Join(s.Respond("1", "n", adstest.Cluster("a", "10.0.0.1:1")), s.Drain())
	})
	m.stop()
	m.listener = bufconn.Listen(1 << 20)
	m.server = adstest.Serve(m.listener, m.script, grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: minTime}))
	target, cutCable := m.withCable()
	return m, target, func() { cutCable(false) }
}

// The client must ping a server that sends the ping header every 30 s. It must therefore open a new
// stream within 51 s after the connection has been cut.
func TestServerAllowsFrequentPings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, target, cut := startPingServer(t, 9*time.Second, func(int) string { return "30s" })
		a := new(recordingWatcher)
		defer Watch(target, Endpoints, "a", a, nil)()
		expect(t, "a", a.take(), "a:1")
		sleep(time.Hour)
		if got := m.server.Streams(); got != 2 {
			t.Errorf("the server saw %d streams, want 2", got)
		}
		cut()
		sleep(51 * time.Second)
		if got := m.server.Streams(); got != 3 {
			t.Errorf("the server saw %d streams, want 3 after the connection was cut", got)
		}
		expect(t, "a", a.take())
		expectOutages(t, "a", a)
	})
}

// The client must ping a server without the ping header every 5 minutes, even if the server sent
// the header on an earlier stream.
func TestServerRevokesFrequentPings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, target, _ := startPingServer(t, 5*time.Minute-time.Second, func(stream int) string {
			if stream != 2 {
				return "30s"
			}
			return ""
		})
		a := new(recordingWatcher)
		defer Watch(target, Endpoints, "a", a, nil)()
		sleep(24 * time.Hour)
		expect(t, "a", a.take(), "a:1")
		if got := m.server.Streams(); got != 3 {
			t.Errorf("the server saw %d streams, want 3: it was pinged too often", got)
		}
	})
}
