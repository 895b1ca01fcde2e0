package serial

import "time"

// A Timer runs an event after a delay. Once it is stopped or restarted, an event that is still
// queued has no effect. The zero value is a stopped Timer. Use it only in events of one serializer.
type Timer struct{ current *time.Timer }

// Start runs fired in an event of s after the given time. If the timer is already running, it is
// restarted.
func (t *Timer) Start(s *Serializer, after time.Duration, fired func()) {
	t.Stop()
	var timer *time.Timer
	timer = time.AfterFunc(after, func() {
		background.Add(1) // because this goroutine also runs events that are queued in the meantime
		defer background.Add(-1)
		s.Run(func() {
			if t.current == timer {
				t.current = nil
				fired()
			}
		})
	})
	t.current = timer
}

func (t *Timer) Stop() {
	if t.current != nil {
		t.current.Stop()
		t.current = nil
	}
}

func (t *Timer) Runs() bool { return t.current != nil }
