package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// Each simulation has its own choice of faults, their frequencies, and timeouts. A fault that hides
// another one then does so only in some simulations.

const attemptTime = 20 * time.Second

// timing has the random timeouts and intervals of a channel and its calls.
type timing struct {
	maxBackoff                  time.Duration
	keepalive, keepaliveTimeout time.Duration
	hang                        time.Duration // the deadline of calls to a hanging server, after which outlier detection notices
}

// shortestKeepalive is the shortest interval between pings that gRPC allows.
const shortestKeepalive = 10 * time.Second

// newTiming returns random values. gRPC's longest backoff is 120 s by default.
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

func (t timing) longestBackoff() time.Duration { return t.maxBackoff * 6 / 5 }

// longestAttempt is the longest timeout of a connection attempt. It is never shorter than the
// backoff after it.
func (t timing) longestAttempt() time.Duration { return max(attemptTime, t.longestBackoff()) }

// longEnough is the longest time until a reachable endpoint is connected: the longest backoff and
// the longest attempt.
func (t timing) longEnough() time.Duration {
	return t.longestBackoff() + t.longestAttempt() + 3*time.Second
}

// drawEvents returns half of the faults and all repairs, with random weights.
func drawEvents(r *rand.Rand) []event {
	drawn := slices.Clone(disturbances)
	r.Shuffle(len(drawn), func(i, j int) { drawn[i], drawn[j] = drawn[j], drawn[i] })
	drawn = append(drawn[:(len(drawn)+1)/2], repairs...)
	for i := range drawn {
		drawn[i].weight = 1 + r.IntN(2*drawn[i].weight)
	}
	return drawn
}
