// Package backoff says how long to wait before what failed is tried again.
package xnet

import (
	"context"
	"math"
	"time"

	"google.golang.org/grpc/backoff"
)

// Backoff returns how long after the beginning of an attempt the next may begin. It is
// gRPC's own backoff: 1 s at first and 120 s at most, give or take up to 20 %, so that
// clients do not all come back at once. attempt counts from 0; random is a uniform
// number in [0, 1).
func Backoff(attempt int, random float64) time.Duration {
	b := backoff.DefaultConfig
	d := min(float64(b.BaseDelay)*math.Pow(b.Multiplier, float64(attempt)), float64(b.MaxDelay))
	d *= 1 + b.Jitter*(2*random-1)
	return time.Duration(d)
}

// Rest waits, unless ctx ends before that. It reports whether it has waited.
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
