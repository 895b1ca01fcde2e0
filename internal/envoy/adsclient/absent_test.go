package adsclient

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/understudy-lb/understudy/internal/testing/adstest"
)

func startAbsent(t *testing.T) (m *manager, catalogue *adstest.Catalogue, cancelCluster func()) {
	catalogue = adstest.NewCatalogue(adstest.Cluster("b", "10.0.0.1:1"))
	m = startManager(t, catalogue.Serve)
	cancelCluster = sync.OnceFunc(Watch(m.serverConfig(), Clusters, "a", new(recordingWatcher), nil))
	t.Cleanup(cancelCluster)
	_, cancelB := m.watch("b")
	t.Cleanup(cancelB)
	a, cancelA := m.watch("a")
	sleep(missingAfter + time.Second)
	expect(t, "a", a.take(), "the server has no such resource")
	cancelA()
	return m, catalogue, cancelCluster
}

// A cluster that was missing is sent again, and its endpoints follow. A new watcher must not get
// the old error before the endpoints arrive.
func TestReturningClusterHidesOldError(t *testing.T) {
	for _, idle := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			m, catalogue, leave := startAbsent(t)
			if idle {
				leave()
			}
			catalogue.Set(adstest.EDS("a"))
			synctest.Wait()
			if idle {
				defer Watch(m.serverConfig(), Clusters, "a", new(recordingWatcher), nil)()
			}
			again, cancelAgain := m.watch("a")
			defer cancelAgain()
			expect(t, "a", again.take())
			catalogue.Set(adstest.Cluster("a", "10.0.0.1:1"))
			expect(t, "a", again.take(), "a:1")
		})
	}
}

// A cluster that was missing is sent again, but its endpoints are not. Watchers must get the error
// after the short timeout. The missing endpoints must not be logged a second time.
func TestClusterReturnsWithoutEndpoints(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, catalogue, _ := startAbsent(t)
		warnings := logged.Count(`did not send endpoints of cluster "a"`)
		catalogue.Set(adstest.EDS("a"))
		synctest.Wait()
		again, cancelAgain := m.watch("a")
		defer cancelAgain()
		sleep(shortMissingAfter - 1)
		expect(t, "a", again.take())
		second, cancelSecond := m.watch("a")
		defer cancelSecond()
		sleep(1)
		expect(t, "a", again.take(), "the server has no such resource")
		expect(t, "the second", second.take(), "the server has no such resource")
		third, cancelThird := m.watch("a")
		defer cancelThird()
		expect(t, "the third", third.take(), "the server has no such resource")
		if got := logged.Count(`did not send endpoints of cluster "a"`) - warnings; got != 0 {
			t.Errorf("logged %d more times, want none", got)
		}
	})
}
