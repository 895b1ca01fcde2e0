package leaf

import (
	"reflect"
	"sync"
	"sync/atomic"

	estats "google.golang.org/grpc/experimental/stats"
)

// This is set once the metrics of a channel have been exported. All policies of the channel share
// it, so that one that a failover creates counts its picks from the start.
type exportFlag struct {
	atomic.Bool
	users int // number of policies that share this value; guarded by exportFlags.mu
}

// The key is the channel's metrics recorder.
var exportFlags struct {
	mu         sync.Mutex
	byRecorder map[estats.MetricsRecorder]*exportFlag
}

// The caller must call releaseExportFlag when it no longer needs the flag.
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

// Holds reports whether a meter of the channel with recorder r is open.
func Holds(r estats.MetricsRecorder) bool {
	exportFlags.mu.Lock()
	defer exportFlags.mu.Unlock()
	return exportFlags.byRecorder[r] != nil
}
