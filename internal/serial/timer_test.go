package serial

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestATimerRunsAnEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s Serializer
		var timer Timer
		fired := 0
		s.Do(func() { timer.Start(&s, time.Hour, func() { fired++ }) })
		want := func(times int, runs bool) {
			t.Helper()
			s.Do(func() {
				if fired != times || timer.Runs() != runs {
					t.Errorf("fired %d times, want %d; it runs: %v, want %v", fired, times, timer.Runs(), runs)
				}
			})
		}
		time.Sleep(time.Hour - time.Nanosecond)
		synctest.Wait()
		want(0, true)
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		want(1, false)
	})
}

// A timer fires, but before its event runs, another event stops or restarts the timer. The first
// event must then do nothing.
func TestATimerThatIsStoppedWhileItFires(t *testing.T) {
	for name, again := range map[string]bool{"stopped": false, "started again": true} {
		synctest.Test(t, func(t *testing.T) {
			var s Serializer
			var timer Timer
			var fired []string
			s.Do(func() { timer.Start(&s, time.Second, func() { fired = append(fired, "first") }) })
			s.Do(func() {
				time.Sleep(2 * time.Second) // the timer fires; its event waits until this one returns
				timer.Stop()
				if again {
					timer.Start(&s, time.Second, func() { fired = append(fired, "second") })
				}
			})
			time.Sleep(time.Minute)
			synctest.Wait()
			s.Do(func() {})
			if again && (len(fired) != 1 || fired[0] != "second") || !again && len(fired) != 0 {
				t.Errorf("%s: fired %v", name, fired)
			}
		})
	}
}
