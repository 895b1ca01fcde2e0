package xnet

import (
	"context"
	"math"
	"time"

	"google.golang.org/grpc/backoff"
)

// Backoff returns the minimum time from the start of this connection attempt to the start of the
// next one. It grows from 1 s to 120 s with 20% jitter, just like gRPC's. attempt starts at 0, and
// random must be uniformly distributed in [0, 1).
func Backoff(attempt int, random float64) time.Duration {
	b := backoff.DefaultConfig
	d := min(float64(b.BaseDelay)*math.Pow(b.Multiplier, float64(attempt)), float64(b.MaxDelay))
	d *= 1 + b.Jitter*(2*random-1)
	return time.Duration(d)
}

// Rest sleeps for d. It returns false as soon as ctx is done.
func Rest(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
