package adsclient

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/understudy-lb/understudy/internal/testing/adstest"
)

func startAbsent(t *testing.T) (m *manager, catalogue *adstest.Catalogue, leave func()) {
	catalogue = adstest.NewCatalogue(adstest.Cluster("b", "10.0.0.1:1"))
	m = startManager(t, catalogue.Serve)
	leave = sync.OnceFunc(Watch(m.target(), Clusters, "a", new(notes), nil))
	t.Cleanup(leave)
	_, cancelB := m.watch("b")
	t.Cleanup(cancelB)
	a, cancelA := m.watch("a")
	pass(missingAfter + time.Second)
	expect(t, "a", a.take(), "the server has no such resource")
	cancelA()
	return m, catalogue, leave
}

// A cluster that was missing comes back together with its endpoints. A new watcher must not get the
// old error just before the endpoints arrive.
func TestAbsentClusterIsBack(t *testing.T) {
	for _, idle := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			m, catalogue, leave := startAbsent(t)
			if idle {
				leave()
			}
			catalogue.Set(adstest.EDS("a"))
			synctest.Wait()
			if idle {
				defer Watch(m.target(), Clusters, "a", new(notes), nil)()
			}
			again, cancelAgain := m.watch("a")
			defer cancelAgain()
			expect(t, "a", again.take())
			catalogue.Set(adstest.Cluster("a", "10.0.0.1:1"))
			expect(t, "a", again.take(), "a:1")
		})
	}
}

// A cluster comes back, but its endpoints do not. Watchers must get the error after a short
// timeout. The metric must not count the missing resource a second time.
func TestAbsentClusterStaysAbsent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, catalogue, _ := startAbsent(t)
		warnings := logged.count(`did not send endpoints of cluster "a"`)
		catalogue.Set(adstest.EDS("a"))
		synctest.Wait()
		again, cancelAgain := m.watch("a")
		defer cancelAgain()
		pass(onItsWay - 1)
		expect(t, "a", again.take())
		second, cancelSecond := m.watch("a")
		defer cancelSecond()
		pass(1)
		expect(t, "a", again.take(), "the server has no such resource")
		expect(t, "the second", second.take(), "the server has no such resource")
		third, cancelThird := m.watch("a")
		defer cancelThird()
		expect(t, "the third", third.take(), "the server has no such resource")
		if got := logged.count(`did not send endpoints of cluster "a"`) - warnings; got != 0 {
			t.Errorf("logged %d more times, want none", got)
		}
	})
}

// No response about clusters has arrived recently, so missing endpoints are not expected soon. A
// new watcher must get the known error at once.
func TestAbsentClusterIsKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, _, _ := startAbsent(t)
		again, cancelAgain := m.watch("a")
		defer cancelAgain()
		expect(t, "a", again.take(), "the server has no such resource")
	})
}
