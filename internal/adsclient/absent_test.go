package adsclient

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/understudy-lb/understudy/internal/testing/adstest"
)

// A cluster without endpoints goes, and comes back with them, while its endpoints are asked for
// all the time: those who watch it again do not hear that it has none, just before these come.
func TestAbsentClusterIsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		back := make(chan struct{})
		m := startManager(t, func(s *adstest.Stream) error {
			s.Respond("1", "n1", adstest.Cluster("b", "10.0.0.1:1"))
			<-back
			s.Respond("2", "n2", adstest.Cluster("a", "10.0.0.1:1"))
			return s.Drain()
		})
		b, cancelB := m.watch("b")
		defer cancelB()
		expect(t, "b", b.take(), "b:1")
		a, cancelA := m.watch("a")
		pass(missingAfter + time.Second)
		expect(t, "a", a.take(), "the server has no such resource")
		cancelA()
		again, cancelAgain := m.watch("a")
		defer cancelAgain()
		expect(t, "a", again.take())
		close(back)
		expect(t, "a", again.take(), "a:1")
	})
}

// If they do not come, it is said soon that there are none, and not counted once more.
func TestAbsentClusterStaysAbsent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := startManager(t, func(s *adstest.Stream) error {
			s.Respond("1", "n1", adstest.Cluster("b", "10.0.0.1:1"))
			return s.Drain()
		})
		_, cancelB := m.watch("b")
		defer cancelB()
		_, cancelA := m.watch("a")
		pass(missingAfter + time.Second)
		cancelA()
		warnings := logged.count(`did not send endpoints of cluster "a"`)
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
