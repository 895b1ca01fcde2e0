package priority

import (
	"time"

	"google.golang.org/grpc/connectivity"

	"github.com/understudy-lb/understudy/internal/stateattr"
)

const (
	// longOutage is the minimum time without a READY child after which a recovery resets the
	// backoffs. After a shorter outage, gRPC's backoffs, which begin at 1 s and grow by a factor of
	// 1.6, are at most 6 s.
	longOutage = 10 * time.Second
	// betweenResets is the minimum time between two resets. A single flapping endpoint therefore
	// causes at most eight connection attempts a minute to each other endpoint.
	betweenResets = time.Minute
)

type outage struct {
	began time.Time // zero while a child is READY
	reset time.Time
}

// noteOutage resets the connection backoffs, which may be up to 120 s, when the first endpoint
// connects after a long outage. Other servers may be up again, too.
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
