package adsclient

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/understudy-lb/understudy/internal/testing/adstest"
)

// thrifty is a server that ends each stream after a while. It sends nothing to a client that has
// the current version, as the protocol allows.
func thrifty(count int, after time.Duration) adstest.Script {
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
// the previous stream". The client must nevertheless notice that such a server is back.
func TestThriftyServerIsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := startManagers(t, map[string]adstest.Script{"first": thrifty(1, 24*time.Hour), "second": thrifty(2, 24*time.Hour)})
		a, stop := follow(true, m["first"], m["second"])
		defer stop()
		expect(t, "a", a.take(), "a:1")
		m["first"].stop()
		pass(time.Minute)
		expect(t, "a", a.take(), "a:2")
		m["first"].start()
		pass(longest)
		expect(t, "a", a.take(), "a:1")
		first := "management server passthrough:///first cannot be reached: connection refused"
		wantOutages(t, "a", a, first, first+"; passthrough:///second is used", "")
	})
}

// The only server sends nothing that the client already has. When it is back, its outage must end.
func TestThriftyServerIsHeard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := startManager(t, thrifty(1, 24*time.Hour))
		a, stop := follow(false, m)
		defer stop()
		expect(t, "a", a.take(), "a:1")
		m.stop()
		pass(time.Minute)
		m.start()
		pass(longest)
		expect(t, "a", a.take())
		wantOutages(t, "a", a, "management server passthrough:///TestThriftyServerIsHeard cannot be reached: connection refused", "")
		if got := time.Since(Heard(m.target())); got != 0 {
			t.Errorf("last message %v ago, want now", got)
		}
	})
}

// A server ends streams in order to spread its clients. This must not count as a failure (gRFC
// A57).
func TestThriftyServerEndsStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := startManagers(t, map[string]adstest.Script{"first": thrifty(1, 30*time.Minute), "second": thrifty(2, 24*time.Hour)})
		a, stop := follow(true, m["first"], m["second"])
		defer stop()
		pass(12 * time.Hour)
		expect(t, "a", a.take(), "a:1")
		wantOutages(t, "a", a)
	})
}
