package sim

import (
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func (w *World) attemptEnded(to string, sent time.Time, err error) {
	// Outlier detection has just recorded this, too.
	w.mu.Lock()
	defer w.mu.Unlock()
	c := w.conditions[to]
	if c == nil {
		return
	}
	c.inFlight--
	if status.Code(err) == codes.Canceled {
		return // the client canceled it, so that's not the backend's fault
	}
	if err != nil {
		c.lastFailure = time.Now()
		c.forgetSuccesses()
		return
	}
	if !sent.After(c.lastFailure) {
		return // it began before the last failure, so the backend may have stopped working since
	}
	if c.lastSuccess = time.Now(); c.firstSuccess.IsZero() {
		c.firstSuccess = c.lastSuccess
	}
	if c.laterSuccess.IsZero() && sent.Sub(c.firstSuccess) > detectionInterval {
		c.laterSuccess = c.lastSuccess
	}
}
