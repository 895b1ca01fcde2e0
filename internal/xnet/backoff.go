package xnet

import (
	"context"
	"math"
	"time"

	"google.golang.org/grpc/backoff"
)

// Backoff returns the time between the beginning of an attempt and that of the next. It follows
// gRPC's connection backoff: 1 s for the first attempt, growing to 120 s, with a jitter of 20 % so
// that clients do not retry at the same time. attempt counts from 0, and random is uniform in [0,
// 1).
func Backoff(attempt int, random float64) time.Duration {
	b := backoff.DefaultConfig
	d := min(float64(b.BaseDelay)*math.Pow(b.Multiplier, float64(attempt)), float64(b.MaxDelay))
	d *= 1 + b.Jitter*(2*random-1)
	return time.Duration(d)
}

// Rest waits for d or until ctx is done. It reports whether it waited for all of d.
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
