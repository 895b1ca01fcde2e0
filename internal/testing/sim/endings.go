package sim

import (
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

type attempt struct {
	sentAt  time.Time
	endedAt time.Time
	failed  bool
	late    bool // it may count as failed, because it was slow where others may have been quick
}

// lateAnswer is how long an answer takes with overflow that may be late for its budget.
const lateAnswer = 100 * time.Millisecond

// maxAttempts is the number of attempts that are recorded for each endpoint. It must be larger than
// the number of attempts in an interval of outlier detection.
const maxAttempts = 2000

func (w *World) attemptEnded(to string, sent time.Time, err error) {
	// Outlier detection has just recorded it, too.
	w.mu.Lock()
	defer w.mu.Unlock()
	c := w.conditions[to]
	if c == nil {
		return
	}
	c.inFlight--
	if err != nil && strings.Contains(err.Error(), "keepalive ping failed") {
		w.mark(markKeepalive)
	}
	if status.Code(err) == codes.Canceled {
		return // a cancellation says nothing about the backend
	}
	if len(c.attempts) >= maxAttempts {
		c.attempts = slices.Clone(c.attempts[maxAttempts/2:])
	}
	c.attempts = append(c.attempts, attempt{sent, time.Now(), err != nil, w.settings.overflow && time.Since(sent) >= lateAnswer})
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
	if c.laterSuccess.IsZero() && sent.Sub(c.firstSuccess) > targetDetection.interval {
		c.laterSuccess = c.lastSuccess
	}
}

// countAttempts counts the attempts of the last period d: failed is the maximum number of failures,
// succeeded is the minimum number of successes, and all is the maximum number of attempts. Attempts
// in flight may be about to fail. Attempts that ended exactly at the beginning or the end of the
// period may or may not belong to it.
func (c *condition) countAttempts(d time.Duration) (failed, succeeded, all int) {
	begin := time.Now().Add(-d)
	failed, all = c.inFlight, c.inFlight
	for _, e := range c.attempts {
		switch certain := e.endedAt.After(begin) && e.endedAt.Before(time.Now()); {
		case e.endedAt.Before(begin):
			continue
		case e.failed || e.late:
			failed++
		case certain:
			succeeded++
		}
		all++
	}
	return failed, succeeded, all
}

func (c *condition) maxConsecutiveFailures() (longest int) {
	// A success interrupts a series of failures only if its attempt was sent after the first of
	// them.
	n, lastSuccessSent := 0, time.Time{}
	for _, e := range slices.Backward(c.attempts) {
		switch {
		case !e.failed && !e.late && e.endedAt.Before(time.Now()):
			lastSuccessSent = latest(lastSuccessSent, e.sentAt)
		case e.failed || e.late:
			if n++; !lastSuccessSent.After(e.endedAt) {
				longest = n
			}
		}
	}
	return longest + c.inFlight
}
