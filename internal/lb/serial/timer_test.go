package serial

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestTimerRunsEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s Serializer
		var timer Timer
		fired := 0
		s.Do(func() { timer.Start(&s, time.Hour, func() { fired++ }) })
		expect := func(times int, runs bool) {
			t.Helper()
			s.Do(func() {
				if fired != times || timer.Runs() != runs {
					t.Errorf("fired %d times, want %d; it runs: %v, want %v", fired, times, timer.Runs(), runs)
				}
			})
		}
		time.Sleep(time.Hour - time.Nanosecond)
		synctest.Wait()
		expect(0, true)
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		expect(1, false)
	})
}

// If a timer has fired, but another event stops or restarts it before its event runs, its event
// must have no effect.
func TestStopTimerThatHasFired(t *testing.T) {
	for name, restart := range map[string]bool{"stopped": false, "started again": true} {
		synctest.Test(t, func(t *testing.T) {
			var s Serializer
			var timer Timer
			var fired []string
			s.Do(func() { timer.Start(&s, time.Second, func() { fired = append(fired, "first") }) })
			s.Do(func() {
				time.Sleep(2 * time.Second) // the timer fires, and its event waits until this event returns
				timer.Stop()
				if restart {
					timer.Start(&s, time.Second, func() { fired = append(fired, "second") })
				}
			})
			time.Sleep(time.Minute)
			synctest.Wait()
			s.Do(func() {})
			if restart && (len(fired) != 1 || fired[0] != "second") || !restart && len(fired) != 0 {
				t.Errorf("%s: fired %v", name, fired)
			}
		})
	}
}
