package sim

import (
	"slices"
	"time"
)

// The checks in this file are about spare connections: those to standbys, and those to the second
// management server.

// checkStandbys checks that the warmStandby priorities below the one in use are connected.
func (w *World) checkStandbys(q quiet) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.settings.standbys == 0 || !q.sure(w) {
		return
	}
	inUse := w.knownOf[q.right[0]]
	for i := range w.known {
		if of := w.knownOf[i]; of <= inUse || of > inUse+w.settings.standbys {
			continue
		}
		for _, s := range w.settings.shares(w.known[i], w.connects) {
			w.mark(markStandby)
			if !slices.ContainsFunc(s.endpoints, w.connected) {
				w.Log.Break(ruleStandby, "none of %v in p%d is connected, although p%d is in use with warmStandby=%d", s.endpoints, i, q.right[0], w.settings.standbys)
			}
		}
	}
}

func (w *World) connected(address string) bool {
	_, open := w.network.Dials(address)
	return open > 0
}

// checkServers looks for connections to the second management server after the first one has worked
// for long enough. The caller holds the lock.
func (w *World) checkServers() {
	if _, open := w.network.Dials(secondAddress); open > 0 && !w.divided {
		w.Log.Break(ruleServer, "it has %d connections, although the source has worked for %v", open, time.Since(w.wellSince))
		w.divided = true
	}
}
