package leaf

import (
	"reflect"
	"sync"
	"sync/atomic"

	estats "google.golang.org/grpc/experimental/stats"
)

// exportFlag is set once the metrics of a channel have been exported. All policies of the channel
// share it. That way, a policy created by a failover counts its picks from the start.
type exportFlag struct {
	atomic.Bool
	users int // number of policies that share it; guarded by exportFlags.mu
}

var exportFlags struct {
	mu         sync.Mutex
	byRecorder map[estats.MetricsRecorder]*exportFlag
}

func acquireExportFlag(r estats.MetricsRecorder) *exportFlag {
	if r == nil || !reflect.TypeOf(r).Comparable() {
		return &exportFlag{}
	}
	exportFlags.mu.Lock()
	defer exportFlags.mu.Unlock()
	a := exportFlags.byRecorder[r]
	if a == nil {
		a = &exportFlag{}
		if exportFlags.byRecorder == nil {
			exportFlags.byRecorder = make(map[estats.MetricsRecorder]*exportFlag)
		}
		exportFlags.byRecorder[r] = a
	}
	a.users++
	return a
}

func releaseExportFlag(r estats.MetricsRecorder, a *exportFlag) {
	exportFlags.mu.Lock()
	defer exportFlags.mu.Unlock()
	if a.users--; a.users == 0 {
		delete(exportFlags.byRecorder, r)
	}
}

func Holds(r estats.MetricsRecorder) bool {
	exportFlags.mu.Lock()
	defer exportFlags.mu.Unlock()
	return exportFlags.byRecorder[r] != nil
}
