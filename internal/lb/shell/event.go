package shell

// Event runs f in an event, unless the policy is closed by then. It doesn't block. You can call it
// on any goroutine, even while holding a lock.
func (s *Shell) Event(f func()) {
	s.serial.Enqueue(func() {
		if !s.closed {
			f()
		}
	})
}
