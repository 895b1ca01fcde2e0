package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// Each world has its own choice of faults and their frequencies, and a channel with its own times.
// The reason is that a fault which hides another one does so only in some worlds.

// attemptTime is the shortest timeout of one connection attempt.
const attemptTime = 20 * time.Second

// timing has the times of a channel and of its calls, which a seed draws. The rules use them, too.
type timing struct {
	maxBackoff                  time.Duration // without gRPC's jitter
	keepalive, keepaliveTimeout time.Duration
	hang                        time.Duration // the deadline of the calls by which outlier detection notices that a server hangs
}

// shortestKeepalive is the shortest interval between pings, for gRPC, too.
const shortestKeepalive = 10 * time.Second

// newTiming draws the times. gRPC's longest backoff is 120 s by default.
func newTiming(r *rand.Rand) timing {
	seconds := func(values ...int) time.Duration {
		return time.Duration(values[r.IntN(len(values))]) * time.Second
	}
	return timing{
		maxBackoff:       seconds(1, 3, 10, 10, 30, 120),
		keepalive:        seconds(10, 20, 20, 60),
		keepaliveTimeout: seconds(5, 5, 20),
		hang:             seconds(2, 5, 5, 15),
	}
}

func (t timing) String() string {
	return fmt.Sprintf("backoff up to %v, keepalive %v and %v, short deadlines of %v", t.maxBackoff, t.keepalive, t.keepaliveTimeout, t.hang)
}

// longestBackoff is the longest backoff with gRPC's jitter of 20 %.
func (t timing) longestBackoff() time.Duration { return t.maxBackoff * 6 / 5 }

// longestAttempt is the longest timeout of one connection attempt, which is never shorter than the
// backoff after it.
func (t timing) longestAttempt() time.Duration { return max(attemptTime, t.longestBackoff()) }

// longEnough is how long it takes, at most, to connect to an endpoint that can be reached: the
// longest backoff and the longest attempt.
func (t timing) longEnough() time.Duration {
	return t.longestBackoff() + t.longestAttempt() + 3*time.Second
}

// drawEvents draws the events of a world: half of the faults and all repairs, with new weights.
func drawEvents(r *rand.Rand) []event {
	drawn := slices.Clone(disturbances)
	r.Shuffle(len(drawn), func(i, j int) { drawn[i], drawn[j] = drawn[j], drawn[i] })
	drawn = append(drawn[:(len(drawn)+1)/2], repairs...)
	for i := range drawn {
		drawn[i].weight = 1 + r.IntN(2*drawn[i].weight)
	}
	return drawn
}
