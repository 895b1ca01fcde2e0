package adsclient

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/understudy-lb/understudy/internal/testing/adstest"
)

// A cluster that was missing is sent again, but its endpoints are not. A new watcher must not get the
// old error before the endpoints may have arrived, but after the short timeout. The missing endpoints must not be logged a second time.
func TestClusterReturnsWithoutEndpoints(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		catalogue := adstest.NewCatalogue(adstest.Cluster("b", "10.0.0.1:1"))
		m := startManager(t, catalogue.Serve)
		defer Watch(m.serverConfig(), Clusters, "a", new(recordingWatcher), nil)()
		m.watch("b")
		a, cancel := m.watch("a")
		sleep(missingAfter + time.Second)
		expect(t, "a", a.take(), "the server has no such resource")
		cancel()
		warnings := logged.Count(`did not send endpoints of cluster "a"`)
		catalogue.Set(adstest.EDS("a"))
		synctest.Wait()
		again, _ := m.watch("a")
		sleep(shortMissingAfter - 1)
		expect(t, "a", again.take())
		second, _ := m.watch("a")
		sleep(1)
		expect(t, "a", again.take(), "the server has no such resource")
		expect(t, "the second", second.take(), "the server has no such resource")
		third, _ := m.watch("a")
		expect(t, "the third", third.take(), "the server has no such resource")
		if got := logged.Count(`did not send endpoints of cluster "a"`) - warnings; got != 0 {
			t.Errorf("logged %d more times, want none", got)
		}
	})
}
