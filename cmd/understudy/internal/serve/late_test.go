package serve

import (
	"context"
	"io"
	"log/slog"
	"sync"
	"testing"

	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
)

// If a request is handled after its stream has ended, no memory is charged for it.
func TestRequestAfterEndOfStream(t *testing.T) {
	c := newClients(slog.New(slog.DiscardHandler), defaultLimits)
	r := request{typeURL: resourcev3.EndpointType, names: []string{"a"}}
	for range 100 { // many times, so that the race detector has a chance to see a race
		s := c.add(context.Background(), false, func(error) {})
		var requests sync.WaitGroup
		requests.Go(func() { _, _ = c.recordRequest(s, r) })
		c.remove(s)
		requests.Wait()
		if _, err := c.recordRequest(s, r); err != io.EOF {
			t.Fatalf("a request after the end of its stream: %v, want %v", err, io.EOF)
		}
	}
	if len(c.streams) > 0 || len(c.connections) > 0 || c.heldBytes > 0 {
		t.Errorf("%d streams, %d connections and %d bytes are held, want none", len(c.streams), len(c.connections), c.heldBytes)
	}
}
