package weightedroundrobin

import (
	"reflect"
	"sync"
	"sync/atomic"

	estats "google.golang.org/grpc/experimental/stats"
)

// asked records that the metrics of a channel have been exported. All policies of the channel share
// it, so that a policy created by a failover counts its picks from the start.
type asked struct {
	atomic.Bool
	users int // number of policies that share this value; guarded by channels.mu
}

// channels maps the metrics recorder of each channel to the channel's asked.
var channels struct {
	mu  sync.Mutex
	all map[estats.MetricsRecorder]*asked
}

// join returns the asked of the channel with recorder r. When the caller no longer needs it, it
// must call leave.
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

func leave(r estats.MetricsRecorder, a *asked) {
	channels.mu.Lock()
	defer channels.mu.Unlock()
	if a.users--; a.users == 0 {
		delete(channels.all, r)
	}
}
