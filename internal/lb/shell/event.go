package shell

// Event queues f to run in an event. If the policy is closed before that, f does not run. This does
// not block, and you may call it on any goroutine, even while you hold a lock.
func (s *Shell) Event(f func()) {
	s.serial.Enqueue(func() {
		if !s.closed {
			f()
		}
	})
}
