package serve

import (
	"context"
	"log/slog"
	"sync"
	"testing"
)

// If a request is handled while its stream ends, no memory is charged for it.
func TestRequestAfterEndOfStream(t *testing.T) {
	c := newTestClients(slog.New(slog.DiscardHandler))
	for range 100 { // many times, so that the race detector has a chance to see a race
		s := c.add(context.Background(), func(error) {})
		var requests sync.WaitGroup
		requests.Go(func() { c.hold(s, 100) })
		c.remove(s)
		requests.Wait()
		c.hold(s, 200)
	}
	if len(c.streams) > 0 || c.held > 0 {
		t.Errorf("%d streams and %d bytes are held, want none", len(c.streams), c.held)
	}
}
