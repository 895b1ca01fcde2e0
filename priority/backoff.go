package priority

import (
	"time"

	"google.golang.org/grpc/connectivity"

	"github.com/understudy-lb/understudy/internal/stateattr"
)

const (
	// longOutage is the minimum length of an outage, in which no child is READY, after which the
	// connection backoffs are reset. After a shorter outage, gRPC's backoffs, which begin at 1 s and
	// grow by a factor of 1.6, are at most 6 s.
	longOutage = 10 * time.Second
	// betweenResets is the minimum time between two resets. One flapping endpoint therefore causes at
	// most eight connection attempts a minute to each of the other endpoints.
	betweenResets = time.Minute
)

type outage struct {
	began time.Time // zero while a child is READY
	reset time.Time
}

// noteOutage resets the connection backoffs, which may be as long as 120 s, when the first endpoint
// connects after a long outage. Other servers have probably recovered, too.
func (p *policy) noteOutage() {
	now := time.Now()
	switch o := &p.outage; {
	case !p.anyReady():
		if o.began.IsZero() {
			o.began = now
		}
	case !o.began.IsZero():
		long := now.Sub(o.began) >= longOutage
		o.began = time.Time{}
		if long && now.Sub(o.reset) >= betweenResets && stateattr.ChannelOf(p.state).ResetBackoff {
			o.reset = now
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
