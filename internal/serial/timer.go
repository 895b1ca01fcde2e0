package serial

import "time"

// A Timer runs an event after a delay. If a Timer is stopped or restarted while it fires, that
// firing has no effect. The zero value is a stopped Timer. A Timer must only be used in events.
type Timer struct{ current *time.Timer }

// Start runs fired in an event of s after the given time. It replaces a pending run.
func (t *Timer) Start(s *Serializer, after time.Duration, fired func()) {
	t.Stop()
	var own *time.Timer
	own = time.AfterFunc(after, func() {
		background.Add(1) // this goroutine also runs events that are queued in the meantime
		defer background.Add(-1)
		s.Run(func() {
			if t.current == own {
				t.current = nil
				fired()
			}
		})
	})
	t.current = own
}

// Stop stops the timer if it is running.
func (t *Timer) Stop() {
	if t.current != nil {
		t.current.Stop()
		t.current = nil
	}
}

// Runs reports whether the timer is running.
func (t *Timer) Runs() bool { return t.current != nil }
