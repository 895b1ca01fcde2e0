package priority

import (
	"time"

	"google.golang.org/grpc/connectivity"

	"github.com/understudy-lb/understudy/internal/stateattr"
)

const (
	// longOutage is the minimum time without a READY child after which a recovery resets backoffs.
	// In a shorter outage, backoffs have not grown beyond 6 s (gRPC's grow from 1 s by a factor of
	// 1.6). A server that closes a connection on purpose causes no long outage.
	longOutage = 10 * time.Second
	// betweenResets is the minimum time between two resets. A flapping endpoint then causes at most
	// eight connection attempts a minute at each other endpoint, because their backoff starts again
	// at 1 s. Without resets, a maximum backoff of 10 s causes six.
	betweenResets = time.Minute
)

// outage records when no child is READY.
type outage struct {
	began time.Time // zero while a child is READY
	reset time.Time // when backoffs were last reset
}

// noteOutage records after an event whether any child is READY. When the first endpoint connects
// after a long outage, the others may be available too, so their backoffs are reset: gRPC's backoff
// may have reached 120 s by then.
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
