package sim

import (
	"slices"
	"time"
)

func (w *World) checkStandbys(q expectation) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.settings.warmStandby == 0 || !q.certain(w) {
		return
	}
	inUse := q.priorities[0]
	for i := inUse + 1; i < min(len(w.knownTruth), inUse+1+w.settings.warmStandby); i++ {
		for _, s := range w.settings.shares(w.knownTruth[i], w.reachable) {
			if !slices.ContainsFunc(s.endpoints, w.hasConnection) {
				w.Log.Break(ruleStandby, "none of %v in p%d is connected, although p%d is in use with warmStandby=%d", s.endpoints, i, inUse, w.settings.warmStandby)
			}
		}
	}
}

func (w *World) hasConnection(address string) bool {
	open := w.network.OpenTo(address)
	return open > 0
}

// checkServers is called once the first server has worked for long enough. The caller holds the
// lock.
func (w *World) checkServers() {
	if open := w.network.OpenTo(secondAddress); open > 0 && !w.secondServerReported {
		w.Log.Break(ruleServer, "it has %d connections, although the source has worked for %v", open, time.Since(w.sourceWorksSince))
		w.secondServerReported = true
	}
}
