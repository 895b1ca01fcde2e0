package adsclient

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/understudy-lb/understudy/internal/testing/adstest"
)

// startAbsent starts a manager whose client watches cluster a until leave is called, and has
// asked for its endpoints, which are missing. Then it watches those of b alone. It returns what
// the manager has.
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

// A cluster without endpoints goes, and comes back with them, while its endpoints are asked for
// all the time: those who watch it again do not hear that it has none, just before these come.
// So it is where the cluster comes back while nobody watches it, since its channel is idle.
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

// If they do not come, it is said soon that there are none, and not counted once more.
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
		third, cancelThird := m.watch("a") // somebody knows
		defer cancelThird()
		expect(t, "the third", third.take(), "the server has no such resource")
		if got := logged.count(`did not send endpoints of cluster "a"`) - warnings; got != 0 {
			t.Errorf("it is logged %d times more, want none", got)
		}
	})
}

// Where no cluster has just come, nothing is on its way: a channel that is no longer idle is
// told at once what is known.
func TestAbsentClusterIsKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, _, _ := startAbsent(t)
		again, cancelAgain := m.watch("a")
		defer cancelAgain()
		expect(t, "a", again.take(), "the server has no such resource")
	})
}
