package weightedroundrobin

import (
	"reflect"
	"sync"
	"sync/atomic"

	estats "google.golang.org/grpc/experimental/stats"
)

// asked says, for all policies of a channel, whether somebody has asked for metrics. So
// those that come with a failover count from their first call on.
type asked struct {
	atomic.Bool
	users int // guarded by channels.mu
}

// channels are those whose policies have meters, by their recorders: each has its own.
var channels struct {
	mu  sync.Mutex
	all map[estats.MetricsRecorder]*asked
}

// join returns what the policies with the recorder share.
func join(r estats.MetricsRecorder) *asked {
	if r == nil || !reflect.TypeOf(r).Comparable() {
		return &asked{}
	}
	channels.mu.Lock()
	defer channels.mu.Unlock()
	a := channels.all[r]
	if a == nil {
		a = &asked{}
		if channels.all == nil {
			channels.all = make(map[estats.MetricsRecorder]*asked)
		}
		channels.all[r] = a
	}
	a.users++
	return a
}

// leave ends what join began.
func leave(r estats.MetricsRecorder, a *asked) {
	channels.mu.Lock()
	defer channels.mu.Unlock()
	if a.users--; a.users == 0 {
		delete(channels.all, r)
	}
}
