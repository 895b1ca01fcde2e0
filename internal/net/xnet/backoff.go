package xnet

import (
	"context"
	"math"
	"time"

	"google.golang.org/grpc/backoff"
)

// Backoff returns the minimum time between the starts of two connection attempts. Like gRPC's
// backoff, this time grows from 1 s to 120 s with a jitter of 20 %. The first attempt is 0. random
// must be uniformly distributed in [0, 1).
func Backoff(attempt int, random float64) time.Duration {
	b := backoff.DefaultConfig
	d := min(float64(b.BaseDelay)*math.Pow(b.Multiplier, float64(attempt)), float64(b.MaxDelay))
	d *= 1 + b.Jitter*(2*random-1)
	return time.Duration(d)
}

// Rest waits for the duration d and returns true, or returns false as soon as ctx is done.
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
