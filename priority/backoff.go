package priority

import (
	"time"

	"google.golang.org/grpc/connectivity"

	"github.com/understudy-lb/understudy/internal/stateattr"
)

const (
	// longOutage is how long nothing has been READY at least where the end of that resets
	// backoffs. Before, they have not grown past 6 s (gRPC's go from 1 s up by a factor of 1.6),
	// and a server that ends a connection on purpose is no outage.
	longOutage = 10 * time.Second
	// betweenResets is how long after a reset there is no other. An endpoint that comes and goes
	// then costs each of the others eight attempts a minute at most: its backoff begins at 1 s
	// again. A longest backoff of 10 s costs six.
	betweenResets = time.Minute
)

// outage is what the policy knows of times when nothing is READY.
type outage struct {
	began time.Time // zero while something is READY
	reset time.Time // when backoffs were reset last
}

// noteOutage notes, after an event, whether anything is READY. Where an endpoint connects after
// an outage, the others may be up as well, and are not waited for: gRPC's backoff may be at
// 120 s by then.
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
