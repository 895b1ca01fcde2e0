package sim

import (
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// attemptEnded records the result of an attempt. Outlier detection has just recorded it, too.
func (w *World) attemptEnded(to string, sent time.Time, err error) {
	// Outlier detection has just recorded it, too.
	w.mu.Lock()
	defer w.mu.Unlock()
	c := w.conditions[to]
	if c == nil {
		return
	}
	c.inFlight--
	if status.Code(err) == codes.Canceled {
		return // a cancellation says nothing about the backend
	}
	if err != nil {
		c.lastFailure = time.Now()
		c.forgetSuccesses()
		return
	}
	if !sent.After(c.lastFailure) {
		return // the attempt began before the last failure, so it may not reflect the current state
	}
	if c.lastSuccess = time.Now(); c.firstSuccess.IsZero() {
		c.firstSuccess = c.lastSuccess
	}
	if c.laterSuccess.IsZero() && sent.Sub(c.firstSuccess) > detectionInterval {
		c.laterSuccess = c.lastSuccess
	}
}
