package weightedroundrobin

import (
	"reflect"
	"sync"
	"sync/atomic"

	estats "google.golang.org/grpc/experimental/stats"
)

// asked records whether the metrics of a channel have ever been exported. The policies of a channel
// share it, so that a policy created in a failover counts its picks from the beginning.
type asked struct {
	atomic.Bool
	users int // number of policies that share it; guarded by channels.mu
}

// channels holds the shared state of each channel. A channel is identified by its metrics recorder.
var channels struct {
	mu  sync.Mutex
	all map[estats.MetricsRecorder]*asked
}

// join returns the shared state of the channel with the recorder r. The caller must call leave
// later.
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
