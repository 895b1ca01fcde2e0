package sim

import (
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// ending is the result of an attempt.
type ending struct {
	sent   time.Time
	at     time.Time
	failed bool
}

// history is the number of results that are kept per endpoint. It exceeds the number of results in
// an interval.
const history = 2000

// attemptEnded receives the result of each attempt that was sent, shortly after outlier detection
// has received it.
func (w *World) attemptEnded(to string, sent time.Time, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := w.conditions[to]
	if c == nil {
		return
	}
	c.underWay--
	if err != nil && strings.Contains(err.Error(), "keepalive ping failed") {
		w.mark(markKeepalive)
	}
	if status.Code(err) == codes.Canceled {
		return // a cancellation says nothing about the backend
	}
	if len(c.ended) >= history {
		c.ended = slices.Clone(c.ended[history/2:])
	}
	c.ended = append(c.ended, ending{sent, time.Now(), err != nil})
	if err != nil {
		c.failed = time.Now()
		c.forget()
		return
	}
	if !sent.After(c.failed) {
		return // the result of a long stream says nothing about the backend's current condition
	}
	if c.answered = time.Now(); c.proven.IsZero() {
		c.proven = c.answered
	}
	if c.shown.IsZero() && sent.Sub(c.proven) > byTarget.interval {
		c.shown = c.answered
	}
}

// within returns bounds for a period: how many attempts may have failed, how many have certainly
// succeeded, and how many there may have been. Attempts in progress may be about to fail. Attempts
// that ended exactly at the beginning or the end of the period may lie outside it.
func (c *condition) within(d time.Duration) (failed, succeeded, all int) {
	begin := time.Now().Add(-d)
	failed, all = c.underWay, c.underWay
	for _, e := range c.ended {
		switch inside := e.at.After(begin) && e.at.Before(time.Now()); {
		case e.at.Before(begin):
			continue
		case e.failed:
			failed++
		case inside:
			succeeded++
		}
		all++
	}
	return failed, succeeded, all
}

// row returns an upper limit for the number of consecutive failures among the latest attempts. A
// success ends a row of failures if its attempt was sent after the first failure. The first failure
// is uncertain, because a row that ejects the endpoint ends there.
func (c *condition) row() (longest int) {
	n, sent := 0, time.Time{} // n counts failures; sent is when the last successful attempt was sent
	for _, e := range slices.Backward(c.ended) {
		switch {
		case !e.failed && e.at.Before(time.Now()):
			sent = latest(sent, e.sent)
		case e.failed:
			if n++; !sent.After(e.at) {
				longest = n
			}
		}
	}
	return longest + c.underWay
}
