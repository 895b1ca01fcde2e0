package adsclient

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/understudy-lb/understudy/internal/testing/adstest"
)

// unchangedServer is a server that ends each stream after the given time. As the protocol allows,
// it sends nothing to a client that already has the current version.
func unchangedServer(count int, after time.Duration) adstest.Script {
	return func(s *adstest.Stream) error {
		r, err := s.Recv()
		if err != nil {
			return err
		}
		if r.GetVersionInfo() != "1" {
			addresses := []string{"10.0.0.1:1", "10.0.0.2:1"}[:count]
			if err := s.Respond("1", "n", adstest.Cluster("a", addresses...)); err != nil {
				return err
			}
		}
		return goAway(s, after)
	}
}

// "Servers may decide to optimize by not resending resources that the client had already seen on
// the previous stream". The client must nevertheless use such a server again after an outage.
func TestReturningServerThatResendsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := startManagers(t, map[string]adstest.Script{"first": unchangedServer(1, 24*time.Hour), "second": unchangedServer(2, 24*time.Hour)})
		a, _ := follow("a", true, m["first"], m["second"])
		expect(t, "a", a.take(), "a:1")
		m["first"].stop()
		sleep(time.Minute)
		expect(t, "a", a.take(), "a:2")
		m["first"].start()
		sleep(reconnectTime)
		expect(t, "a", a.take(), "a:1")
		first := "management server passthrough:///first cannot be reached: connection refused"
		expectOutages(t, "a", a, first, first+"; passthrough:///second is used", "")
	})
}

// A server ends each stream after 30 minutes, to spread its clients. This must not count as a
// failure (gRFC A57).
func TestPeriodicStreamEndIsNoOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := startManagers(t, map[string]adstest.Script{"first": unchangedServer(1, 30*time.Minute), "second": unchangedServer(2, 24*time.Hour)})
		a, _ := follow("a", true, m["first"], m["second"])
		sleep(12 * time.Hour)
		expect(t, "a", a.take(), "a:1")
		expectOutages(t, "a", a)
	})
}
