package sim

import (
	"slices"
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

// history is how many results are kept per endpoint: more than an interval has.
const history = 2000

// attemptEnded receives the result of each attempt that was sent, shortly after outlier detection.
func (w *World) attemptEnded(to string, sent time.Time, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := w.conditions[to]
	if c == nil {
		return
	}
	c.underWay--
	if status.Code(err) == codes.Canceled {
		return // a cancellation is no result of the backend
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
		return // a long stream is no result of the backend's present condition
	}
	if c.answered = time.Now(); c.proven.IsZero() {
		c.proven = c.answered
	}
	if c.shown.IsZero() && sent.Sub(c.proven) > byTarget.interval {
		c.shown = c.answered
	}
}

// within returns bounds for a period: how many attempts may have failed, and how many have
// certainly succeeded. Attempts in progress may be about to fail. Those that ended exactly at one
// of its ends may be outside.
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

// row returns how many consecutive attempts may have failed last. A success ends a row if it was
// sent after the row's first failure. The first failure is uncertain, because a row that ejects the
// endpoint ends there.
func (c *condition) row() (longest int) {
	n, sent := 0, time.Time{} // of the last success
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
