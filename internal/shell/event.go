package shell

// Event runs f in an event, unless the policy is closed by then. It returns at once, so
// that any goroutine may call it, whatever locks are held.
func (s *Shell) Event(f func()) {
	s.serial.Enqueue(func() {
		if !s.closed {
			f()
		}
	})
}
