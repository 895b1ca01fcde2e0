package priority

import (
	"math/rand/v2"
	"time"

	"google.golang.org/grpc/connectivity"

	"github.com/understudy-lb/understudy/internal/lb/stateattr"
)

const (
	shortestWait = 2 * time.Second
	longestWait  = 10 * time.Second
	waitEach     = time.Second / 2
)

// longestBackoff applies while no child is READY. We want to notice quickly when a server comes up,
// so we make up to two attempts a second. gRPC's own backoff can be as long as 120 s.
func longestBackoff(endpoints int) time.Duration {
	return min(longestWait, max(shortestWait, time.Duration(endpoints)*waitEach))
}

const jitter = 1.2

func (p *policy) backoff() time.Duration {
	most := time.Duration(jitter * float64(stateattr.ChannelOf(p.state).MaxBackoff))
	if longest := longestBackoff(len(p.state.Endpoints)); !p.anyReady() && stateattr.ChannelOf(p.state).MaxBackoff > longest {
		return longest
	}
	return most
}

func (p *policy) limitBackoffs() {
	// The times are random because a whole fleet will have lost its servers at the same moment.
	longest := longestBackoff(len(p.state.Endpoints))
	limited := stateattr.ChannelOf(p.state).MaxBackoff > longest && !p.anyReady()
	for _, c := range p.children {
		switch _, runs := c.TimerEnds(backoffTimer); {
		case !limited:
			c.StopTimer(backoffTimer)
		case !runs:
			c.StartTimer(backoffTimer, longest/4+rand.N(longest/4), func() {
				c.ResetBackoff(longest / 2)
				p.limitBackoffs()
			})
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
