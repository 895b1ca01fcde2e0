package shell

// Event runs f in an event, unless the policy is closed by then. It never blocks, so that it may be
// called from any goroutine and with any lock held.
func (s *Shell) Event(f func()) {
	s.serial.Enqueue(func() {
		if !s.closed {
			f()
		}
	})
}
