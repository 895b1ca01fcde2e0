package live

import (
	"testing"
	"time"
)

// Where each channel that is closed looked at all others, closing n of them took time that
// grows as n².
func TestNoChannelLooksAtTheOthers(t *testing.T) {
	none := func() []Source { return nil }
	other := New("other", none)
	other.Attach("root", new(int))
	defer func() { other.Stop(); other.Retire(nil) }()
	done := make(chan struct{})
	other.mu.Lock()
	go func() {
		defer close(done)
		c := New("c", none)
		c.Attach("root", new(int))
		c.Stop()
		c.Retire("tree")
	}()
	select {
	case <-done:
		other.mu.Unlock()
	case <-time.After(30 * time.Second):
		other.mu.Unlock()
		<-done
		t.Error("a channel that is opened and closed waits for another one")
	}
}
