package shell

// Event queues f to run in an event. If the policy has been closed by then, f does not run. Event
// never blocks, so it may be called from any goroutine and with any lock held.
func (s *Shell) Event(f func()) {
	s.serial.Enqueue(func() {
		if !s.closed {
			f()
		}
	})
}
