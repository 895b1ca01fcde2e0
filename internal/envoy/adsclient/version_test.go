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
		expectVersion := func(watcher *recordingWatcher, update, version string) {
			t.Helper()
			expect(t, "a watcher", watcher.take(), update)
			if watcher.version != version {
				t.Errorf("%s has the version %q, want %q", update, watcher.version, version)
			}
		}
		first, cancelFirst := m.watch("a")
		defer cancelFirst()
		expectVersion(first, "a:1", "41")
		second, cancelSecond := m.watch("a")
		defer cancelSecond()
		expectVersion(second, "a:1", "41")
		close(next)
		expectVersion(first, "a:2", "42")
		expectVersion(second, "a:2", "42")
		_, cancelB := m.watch("b") // keeps the stream open while nobody watches a
		defer cancelB()
		cancelFirst()
		cancelSecond()
		third, cancelThird := m.watch("a")
		defer cancelThird()
		expectVersion(third, "a:2", "42")
	})
}

// An update of two resources is rejected. Rejected must be called for the watcher that already
// has a valid resource, and Unknown for the watcher that has none.
func TestRejectedResourceIsReported(t *testing.T) {
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
		expect(t, "b", b.take(), `no endpoints of cluster "b" from passthrough:///TestRejectedResourceIsReported: `)
		expect(t, "a", a.take())
		expect(t, "a", a.rejected, `eds: rejected the endpoints of cluster "a" from passthrough:///TestRejectedResourceIsReported: `)
		expect(t, "b", b.rejected)
	})
}
