package live

import (
	"testing"
	"time"
)

// Opening or closing a channel must not lock all other channels. Otherwise, closing n channels
// would take quadratic time.
func TestOpenAndCloseDoNotLockOtherChannels(t *testing.T) {
	noSources := func() []Source { return nil }
	other := New("other", noSources)
	other.Attach("root", new(int))
	defer func() { other.Stop(); other.Retire(nil) }()
	done := make(chan struct{})
	other.mu.Lock()
	go func() {
		defer close(done)
		c := New("c", noSources)
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
		t.Error("opening and closing a channel waits for another channel")
	}
}
