package xnet

import (
	"context"
	"math/rand/v2"
	"time"
)

// minPause is the minimum time between a lookup and the next lookup that a failed connection
// causes, as in gRPC's DNS resolver.
const minPause = 30 * time.Second

// Lookups repeats a lookup.
type Lookups struct {
	every    time.Duration
	requests chan struct{}
}

// NewLookups returns lookups that are repeated every interval or, if this is 0, only by request.
func NewLookups(every time.Duration) Lookups { return Lookups{every, make(chan struct{}, 1)} }

// Request requests a lookup. If a request is already pending, it does nothing.
func (l Lookups) Request() {
	select {
	case l.requests <- struct{}{}:
	default:
	}
}

// Run calls lookUp until ctx is done. After a failed lookup, the next one follows with gRPC's
// backoff, or after the interval if that is shorter.
func (l Lookups) Run(ctx context.Context, lookUp func(context.Context) (ok bool)) {
	for failures := 0; ctx.Err() == nil; {
		if lookUp(ctx) {
			failures = 0
			l.wait(ctx)
			continue
		}
		delay := Backoff(failures, rand.Float64())
		if l.every > 0 {
			delay = min(delay, jittered(l.every))
		}
		failures++
		Rest(ctx, delay)
	}
}

// wait waits until the interval has elapsed or a lookup is requested. A requested lookup takes place
// after minPause or after the interval, whichever is shorter.
func (l Lookups) wait(ctx context.Context) {
	start := time.Now()
	minWait := minPause
	var due <-chan time.Time
	if l.every > 0 {
		minWait, due = min(minWait, l.every), time.After(jittered(l.every))
	}
	select {
	case <-ctx.Done():
	case <-due:
	case <-l.requests:
		Rest(ctx, minWait-time.Since(start))
	}
}

// jittered returns d, changed by at most 10% at random.
func jittered(d time.Duration) time.Duration {
	return d + time.Duration((rand.Float64()-0.5)*0.2*float64(d))
}
