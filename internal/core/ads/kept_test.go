package ads

import (
	"strconv"
	"testing"
)

// received gives s a resource of size bytes, and returns whether that is too much.
func received(s *Subscriptions, name string, size int) bool {
	return s.Received("1", "n", []Resource{{Name: name, Body: make([]byte, size)}}).Renew
}

// What nobody watches is kept up to 100 resources and 16 MiB; what is watched counts
// for neither.
func TestWhatIsKeptIsBounded(t *testing.T) {
	t.Run("number", func(t *testing.T) {
		s := New()
		for i := range 300 {
			s.Watch(strconv.Itoa(i), false)
		}
		s.Opened()
		for i := range 101 {
			if got, want := s.Unwatch(strconv.Itoa(i)).Renew, i == 100; got != want {
				t.Errorf("renews with %d that nobody watches: %v, want %v", i+1, got, want)
			}
		}
		s.Closed(nil)
		if got := len(s.Opened().Send.Names); got != 199 {
			t.Errorf("the new stream asks for %d, want the 199 that are watched", got)
		}
	})
	t.Run("bytes", func(t *testing.T) {
		s := New()
		for _, name := range []string{"stays", "a", "b"} {
			s.Watch(name, false)
		}
		s.Opened()
		if received(s, "stays", maxKeptBytes+1) || received(s, "a", maxKeptBytes/2) || received(s, "b", maxKeptBytes/2) {
			t.Error("renews because of what is watched")
		}
		if s.Unwatch("a").Renew || s.Unwatch("b").Renew {
			t.Error("renews with 16 MiB that nobody watches")
		}
		if !received(s, "b", maxKeptBytes/2+1) {
			t.Error("keeps 16 MiB and a byte that nobody watches")
		}
	})
}
