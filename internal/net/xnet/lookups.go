package xnet

import (
	"context"
	"math/rand/v2"
	"time"
)

// If connections fail, we look up names again, but not more often than this. gRPC's DNS resolver
// uses the same limit.
const minPause = 30 * time.Second

type Lookups struct {
	every    time.Duration
	requests chan struct{}
}

// NewLookups repeats lookups at the given interval. If it's 0, they're only repeated on request.
func NewLookups(every time.Duration) Lookups { return Lookups{every, make(chan struct{}, 1)} }

// Request requests a lookup, unless there's one pending already.
func (l Lookups) Request() {
	select {
	case l.requests <- struct{}{}:
	default:
	}
}

// Run calls lookUp until ctx is done. If a lookup fails, we try again after gRPC's backoff or after
// the interval, whichever is shorter.
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

// wait returns when it's time for the next lookup. If somebody requests one, it still has to wait
// for minPause or the interval, whichever is shorter.
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

func jittered(d time.Duration) time.Duration { // give or take 10%
	return d + time.Duration((rand.Float64()-0.5)*0.2*float64(d))
}
