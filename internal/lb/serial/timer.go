package serial

import "time"

// A Timer runs an event after a delay. If you stop or restart it, an event that's already queued
// won't do anything. The zero value is a stopped Timer. Only use it in events of a single
// serializer.
type Timer struct{ current *time.Timer }

// Start schedules fired to run on s after the given time. If the timer was already running, it
// starts over.
func (t *Timer) Start(s *Serializer, after time.Duration, fired func()) {
	t.Stop()
	var timer *time.Timer
	timer = time.AfterFunc(after, func() {
		background.Add(1) // this goroutine may also run other queued events
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
