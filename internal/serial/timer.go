package serial

import "time"

// A Timer runs an event at a later time. If it is stopped or started again while it
// fires, that firing does nothing. The zero value is a stopped timer. It is used in
// events only.
type Timer struct{ current *time.Timer }

// Start makes fired run in an event of s after the given time. It replaces an earlier
// run that is still to come.
func (t *Timer) Start(s *Serializer, after time.Duration, fired func()) {
	t.Stop()
	var own *time.Timer
	own = time.AfterFunc(after, func() {
		background.Add(1) // this goroutine also runs what others queue meanwhile
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

// Stop stops the timer, if it runs.
func (t *Timer) Stop() {
	if t.current != nil {
		t.current.Stop()
		t.current = nil
	}
}

// Runs returns whether the timer runs.
func (t *Timer) Runs() bool { return t.current != nil }
