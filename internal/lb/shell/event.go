package shell

// Event queues f to run in an event. If the policy is closed before that, f does not run. Event
// does not block and may be called on any goroutine, even while the caller holds a lock.
func (s *Shell) Event(f func()) {
	s.serial.Enqueue(func() {
		if !s.closed {
			f()
		}
	})
}
