package adsclient

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/understudy-lb/understudy/internal/testing/adstest"
)

// The first server responds late and does not send one of the two resources. The client must use it
// nevertheless, and the other resource must count as missing.
func TestSlowServerWithMissingResource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := func(s *adstest.Stream) error {
			sleep(missingAfter + 5*time.Second)
			return errors.Join(s.Respond("1", "n", adstest.Cluster("a", "10.0.0.1:1")), s.Drain())
		}
		second := func(s *adstest.Stream) error {
			for names := 0; names < 2; {
				r, err := s.Recv()
				if err != nil {
					return err
				}
				names = len(r.GetResourceNames())
			}
			return errors.Join(s.Respond("1", "n", adstest.Cluster("a", "10.0.0.1:1", "10.0.0.2:1"), adstest.Cluster("b", "10.0.0.3:1")), s.Drain())
		}
		m := startManagers(t, map[string]adstest.Script{"first": first, "second": second})
		n := new(recordingWatcher)
		defer Follow(Target{
			Cluster: "a",
			Servers: []Server{m["first"].serverConfig(), m["second"].serverConfig()},
			Needs:   func(map[string]State) Needs { return Needs{Endpoints: []string{"a", "b"}} },
		}, recordingFollower{n}, nil).Stop()
		sleep(missingAfter + 10*time.Second)
		received := n.take()
		expect(t, "a", received[max(0, len(received)-2):], "a:2", "b:1")
		late, _ := m["first"].watch("b")
		expect(t, "late", late.take())
		sleep(missingAfter)
		expect(t, "a", n.take(), "a:1", `no endpoints of cluster "b" from passthrough:///first: the server has no such resource`)
		expect(t, "late", late.take(), "the server has no such resource")
	})
}

func goAway(s *adstest.Stream, after time.Duration) error {
	select {
	case <-s.Context().Done():
	case <-time.After(after):
	}
	return errors.New("go away")
}

// A server responds on its first stream and sends nothing on the next one. It must count as
// unreachable.
func TestServerSilentOnNextStreamIsUnreachable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := func(s *adstest.Stream) error {
			if s.Number > 1 {
				return s.Drain()
			}
			if err := s.Respond("1", "n"); err != nil {
				return err
			}
			return goAway(s, 5*time.Second)
		}
		m := startManagers(t, map[string]adstest.Script{"first": first, "second": serveEndpoints(2)})
		a, _ := follow("a", true, m["first"], m["second"])
		sleep(missingAfter)
		expect(t, "a", a.take(), "from passthrough:///first: the server has no such resource")
		sleep(missingAfter)
		if got := a.take(); !slices.Contains(got, "a:2") {
			t.Errorf("received %q, want the second server's endpoints", got)
		}
	})
}
