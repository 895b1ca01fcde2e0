package adsclient

import (
	"testing"
	"testing/synctest"

	"github.com/understudy-lb/understudy/internal/testing/adstest"
)

func TestResourcesHaveVersions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		next := make(chan struct{})
		m := startManager(t, func(s *adstest.Stream) error {
			s.Recv()
			s.Respond("41", "n1", adstest.Cluster("a", "10.0.0.1:1"))
			s.Recv()
			<-next
			s.Respond("42", "n2", adstest.Cluster("a", "10.0.0.1:1", "10.0.0.2:1"))
			return s.Drain()
		})
		versions := func(who *notes, told, version string) {
			t.Helper()
			expect(t, "a watcher", who.take(), told)
			if who.version != version {
				t.Errorf("%s has the version %q, want %q", told, who.version, version)
			}
		}
		first, cancelFirst := m.watch("a")
		defer cancelFirst()
		versions(first, "a:1", "41")
		second, cancelSecond := m.watch("a")
		defer cancelSecond()
		versions(second, "a:1", "41")
		close(next)
		versions(first, "a:2", "42")
		versions(second, "a:2", "42")
	})
}

// An update of a resource is rejected. Watchers that have a good resource must get Rejected, and
// the others Unknown.
func TestARejectedResourceIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := startManager(t, func(s *adstest.Stream) error {
			s.Recv()
			bad, worse := adstest.Cluster("a", "10.0.0.1:1"), adstest.Cluster("b", "10.0.0.1:1")
			bad.Endpoints[0].Priority, worse.Endpoints[0].Priority = 7, 7
			s.Respond("1", "n1", adstest.Cluster("a", "10.0.0.1:1"))
			s.Recv()
			s.Recv()
			s.Respond("2", "n2", bad, worse)
			return s.Drain()
		})
		a, cancelA := m.watch("a")
		defer cancelA()
		expect(t, "a", a.take(), "a:1")
		b, cancelB := m.watch("b")
		defer cancelB()
		expect(t, "b", b.take(), `no endpoints of cluster "b" from passthrough:///TestARejectedResourceIsTold: `)
		expect(t, "a", a.take())
		expect(t, "a", a.rejected, `eds: rejected the endpoints of cluster "a" from passthrough:///TestARejectedResourceIsTold: `)
		expect(t, "b", b.rejected)
	})
}
