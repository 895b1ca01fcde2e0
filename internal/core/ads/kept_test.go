package ads

import (
	"strconv"
	"testing"
)

func received(s *Subscriptions, name string, size int) bool {
	return s.Received("1", "n", []Resource{{Name: name, Body: make([]byte, size)}}).Renew
}

func TestUnwatchedResourcesAreLimited(t *testing.T) {
	t.Run("number", func(t *testing.T) {
		s := New()
		for i := range 300 {
			s.Watch(strconv.Itoa(i), false)
		}
		s.Opened()
		for i := range 101 {
			if got, want := s.Unwatch(strconv.Itoa(i)).Renew, i == 100; got != want {
				t.Errorf("with %d unwatched resources, renew = %v, want %v", i+1, got, want)
			}
		}
		s.Closed(nil)
		if got := len(s.Opened().Send.Names); got != 199 {
			t.Errorf("the new stream requests %d resources, want the 199 watched ones", got)
		}
	})
	t.Run("bytes", func(t *testing.T) {
		s := New()
		for _, name := range []string{"stays", "a", "b"} {
			s.Watch(name, false)
		}
		s.Opened()
		if received(s, "stays", 16<<20+1) || received(s, "a", 8<<20) || received(s, "b", 8<<20) {
			t.Error("watched resources renew the stream")
		}
		if s.Unwatch("a").Renew || s.Unwatch("b").Renew {
			t.Error("16 MiB of unwatched resources renew the stream")
		}
		if !received(s, "b", 8<<20+1) {
			t.Error("16 MiB and a byte of unwatched resources do not renew the stream")
		}
	})
}
