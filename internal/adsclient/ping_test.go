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

// cabled returns how to reach the server, and how to cut the connection made last.
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

// startPinged starts a server in a bubble that says which pings it allows, "" for nothing, and
// enforces minTime. It returns how to reach it, and how to cut the connection in use.
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

// A server that says that it allows it is pinged every 30 s, so one that is gone without a word
// is noticed within 50 s. The first connection is replaced for that, once.
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
			t.Errorf("the server saw %d streams, want 3: it was gone without a word", got)
		}
		expect(t, "a", a.take())
		wantOutages(t, "a", a)
	})
}

// One that does not say so is pinged as seldom as before, also if another that answered
// at the same address did say so.
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
			t.Errorf("the server saw %d streams, want 3: it is pinged too often", got)
		}
	})
}
