package adsclient

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"

	"github.com/understudy-lb/understudy/internal/testing/adstest"
	"github.com/understudy-lb/understudy/internal/testing/testlog"
)

var logged = testlog.CaptureWarnings()

// A server ends each stream after a response. The client must open a new stream every second. A
// resource that the server does not send must count as missing after missingAfter, although no
// stream lasts that long.
func TestServerThatEndsStreamAfterEachResponse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := startManager(t, func(s *adstest.Stream) error {
			if _, err := s.Recv(); err != nil {
				return err
			}
			return s.Respond("1", "n", adstest.Cluster("a", "10.0.0.1:1"))
		})
		a, _ := m.watch("a")
		b, _ := m.watch("b")
		sleep(missingAfter - time.Millisecond)
		expect(t, "a", a.take(), "a:1")
		expect(t, "b", b.take())
		sleep(2 * time.Millisecond)
		expect(t, "b", b.take(), "no such resource")
		sleep(5 * time.Minute)
		expect(t, "a", a.take())
		if got := m.server.Streams(); got < 250 || got > 400 {
			t.Errorf("%d streams in 315 s, want one each second, ± 20 %%", got)
		}
	})
}

func TestUnknownTypeIsLoggedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const what = "type.googleapis.com/flood"
		m := startManager(t, func(s *adstest.Stream) error {
			for range 1000 {
				if err := s.Send(&discoveryv3.DiscoveryResponse{TypeUrl: what, VersionInfo: "1", Nonce: "n"}); err != nil {
					return err
				}
			}
			return errors.Join(s.Respond("1", "n", adstest.Cluster("a", "10.0.0.1:1")), s.Drain())
		})
		before := logged.Count(what)
		a, _ := m.watch("a")
		expect(t, "a", a.take(), "a:1")
		if got := logged.Count(what) - before; got != 1 {
			t.Errorf("logged %d times, want once", got)
		}
	})
}
