package priority

import (
	"time"

	"google.golang.org/grpc/connectivity"

	"github.com/understudy-lb/understudy/internal/stateattr"
)

const (
	// longOutage is the minimum time without a READY child after which a recovery resets backoffs.
	// In a shorter outage, backoffs do not exceed 6 s (gRPC's grow from 1 s by a factor of 1.6).
	longOutage = 10 * time.Second
	// betweenResets is the minimum time between two resets. A flapping endpoint then causes at most
	// eight connection attempts a minute at each other endpoint.
	betweenResets = time.Minute
)

// outage records when the current time without a READY child began, and when backoffs were last
// reset.
type outage struct {
	began time.Time // zero while a child is READY
	reset time.Time
}

// noteOutage records after an event whether any child is READY. When the first endpoint connects
// after a long outage, the others may be available too, so their backoffs (up to 120 s) are reset.
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
