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
		time.Sleep(time.Hour - time.Nanosecond)
		synctest.Wait()
		if fired != 0 || !timer.Runs() {
			t.Fatal("fired early")
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		if fired != 1 || timer.Runs() {
			t.Errorf("fired %d times, and runs: %v", fired, timer.Runs())
		}
	})
}

// The timer fires while an event runs that stops it, or starts it again.
func TestATimerThatIsStoppedWhileItFires(t *testing.T) {
	for name, again := range map[string]bool{"stopped": false, "started again": true} {
		synctest.Test(t, func(t *testing.T) {
			var s Serializer
			var timer Timer
			var fired []string
			s.Do(func() { timer.Start(&s, time.Second, func() { fired = append(fired, "first") }) })
			s.Do(func() {
				time.Sleep(2 * time.Second) // it fires, and waits for its turn
				timer.Stop()
				if again {
					timer.Start(&s, time.Second, func() { fired = append(fired, "second") })
				}
			})
			time.Sleep(time.Minute)
			synctest.Wait()
			if again && (len(fired) != 1 || fired[0] != "second") || !again && len(fired) != 0 {
				t.Errorf("%s: fired %v", name, fired)
			}
		})
	}
}
