package priority

import (
	"time"

	"google.golang.org/grpc/connectivity"

	"github.com/understudy-lb/understudy/internal/lb/stateattr"
)

const (
	// minOutage is the minimum length of an outage after which the connection backoffs are reset. In
	// an outage, no child is READY. After a shorter outage, gRPC's backoffs are at most 6 s, because
	// they begin at 1 s and grow by a factor of 1.6.
	minOutage = 10 * time.Second
	// minResetInterval is the minimum time between two resets. Because of it, one flapping endpoint
	// causes at most eight connection attempts per minute to each of the other endpoints.
	minResetInterval = time.Minute
)

type outage struct {
	start     time.Time // zero while a child is READY
	lastReset time.Time
}

// resetBackoffAfterOutage resets the connection backoffs when the first endpoint connects after a
// long outage, because other servers have probably recovered, too. A connection backoff may last
// 120 s.
func (p *policy) resetBackoffAfterOutage() {
	now := time.Now()
	switch o := &p.outage; {
	case !p.anyReady():
		if o.start.IsZero() {
			o.start = now
		}
	case !o.start.IsZero():
		isLong := now.Sub(o.start) >= minOutage
		o.start = time.Time{}
		if isLong && now.Sub(o.lastReset) >= minResetInterval && stateattr.ChannelOf(p.state).ResetBackoff {
			o.lastReset = now
			p.ResetBackoff()
		}
	}
}

func (p *policy) anyReady() bool {
	for _, c := range p.children {
		if c.State().ConnectivityState == connectivity.Ready {
			return true
		}
	}
	return false
}
