package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// Each simulation draws its own kinds of faults, their frequencies and the timeouts. That way, if
// one kind of fault hides the effects of another, some simulations will have just the other one.

const minConnectTimeout = 20 * time.Second

type timing struct {
	maxBackoff                  time.Duration
	keepalive, keepaliveTimeout time.Duration
	shortDeadline               time.Duration // for some calls, so that outlier detection notices hanging endpoints
}

const shortestKeepalive = 10 * time.Second

func newTiming(r *rand.Rand) timing {
	seconds := func(values ...int) time.Duration {
		return time.Duration(values[r.IntN(len(values))]) * time.Second
	}
	return timing{
		maxBackoff:       seconds(1, 3, 10, 10, 30, 120),
		keepalive:        seconds(10, 20, 20, 60),
		keepaliveTimeout: seconds(5, 5, 20),
		shortDeadline:    seconds(2, 5, 5, 15),
	}
}

func (t timing) String() string {
	return fmt.Sprintf("backoff up to %v, keepalive %v and %v, short deadlines of %v", t.maxBackoff, t.keepalive, t.keepaliveTimeout, t.shortDeadline)
}

func (t timing) maxJitteredBackoff() time.Duration { return t.maxBackoff * 6 / 5 }

// maxAttemptTime is at least as long as the backoff that follows.
func (t timing) maxAttemptTime() time.Duration { return max(minConnectTimeout, t.maxJitteredBackoff()) }

// maxConnectTime is how long it may take to connect to a reachable endpoint: the longest backoff,
// the longest connection attempt, and some tolerance.
func (t timing) maxConnectTime() time.Duration {
	return t.maxJitteredBackoff() + t.maxAttemptTime() + 3*time.Second
}

func drawEvents(r *rand.Rand) []event {
	drawn := slices.Clone(disturbances)
	r.Shuffle(len(drawn), func(i, j int) { drawn[i], drawn[j] = drawn[j], drawn[i] })
	drawn = append(drawn[:(len(drawn)+1)/2], repairs...)
	for i := range drawn {
		drawn[i].weight = 1 + r.IntN(2*drawn[i].weight)
	}
	return drawn
}
