package shell

// Event queues f to run in an event, unless the policy is closed before that. Event does not block,
// so the caller may be on any goroutine and hold any lock.
func (s *Shell) Event(f func()) {
	s.serial.Enqueue(func() {
		if !s.closed {
			f()
		}
	})
}
