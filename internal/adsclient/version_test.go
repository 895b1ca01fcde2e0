package adsclient

import (
	"testing"
	"testing/synctest"

	"github.com/understudy-lb/understudy/internal/testing/adstest"
)

// A resource has the version of the response that brought it, also for those who come
// later.
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
