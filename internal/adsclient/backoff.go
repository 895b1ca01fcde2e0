package adsclient

import (
	"math"
	"math/rand/v2"
	"time"

	"google.golang.org/grpc/backoff"
)

// delay returns how long after the beginning of an attempt the next may begin:
// gRPC's own backoff, 1 s at first and 120 s at most, less or more by up to 20 % so
// that clients do not come back all at once. attempt counts from 0.
func delay(attempt int) time.Duration {
	b := backoff.DefaultConfig
	d := min(float64(b.BaseDelay)*math.Pow(b.Multiplier, float64(attempt)), float64(b.MaxDelay))
	d *= 1 + b.Jitter*(2*rand.Float64()-1)
	return time.Duration(d)
}
