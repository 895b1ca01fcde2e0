package demo

import (
	"context"
	"sync"
	"time"

	"google.golang.org/grpc"
)

// Even if all pending calls wait for a priority that's full, it can answer them within their
// deadline.
const (
	pause    = time.Second / 300 // time between two calls
	pending  = 180               // maximum number of calls in flight
	deadline = 2 * time.Second
)

type call struct {
	end     time.Time
	address string
	err     error
}

type traffic struct {
	mu    sync.Mutex
	calls []call
}

func startTraffic(cc grpc.ClientConnInterface, keep bool) (t *traffic, end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	t = &traffic{}
	var running sync.WaitGroup
	running.Go(func() {
		ticker := time.NewTicker(pause)
		defer ticker.Stop()
		places := make(chan struct{}, pending)
		for ctx.Err() == nil {
			<-ticker.C
			places <- struct{}{}
			running.Go(func() {
				defer func() { <-places }()
				address, err := callWhoAmI(ctx, cc)
				t.mu.Lock()
				defer t.mu.Unlock()
				if keep {
					t.calls = append(t.calls, call{time.Now(), address, err})
				}
			})
		}
	})
	return t, func() {
		cancel()
		running.Wait()
	}
}

func (t *traffic) after(n int) []call {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.calls[n:len(t.calls):len(t.calls)]
}
