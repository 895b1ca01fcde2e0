package sim

import (
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// ending is how an attempt of a call ended.
type ending struct {
	sent   time.Time
	at     time.Time
	failed bool
}

// history is how many of the last attempts are kept for each endpoint: more than come within
// the longest interval.
const history = 2000

// attemptEnded takes each attempt that was sent, when it has ended. Outlier detection
// was told shortly before.
func (w *World) attemptEnded(to string, sent time.Time, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := w.conditions[to]
	if c == nil {
		return
	}
	c.underWay--
	if status.Code(err) == codes.Canceled {
		return // a client that has had enough says nothing of the backend
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
		return // a long stream says nothing of what has come since
	}
	if c.answered = time.Now(); c.proven.IsZero() {
		c.proven = c.answered
	}
	if c.shown.IsZero() && sent.Sub(c.proven) > byTarget.interval {
		c.shown = c.answered
	}
}

// within returns how many attempts at most may have failed, and how many have succeeded for
// sure, after a time. Those under way may be about to fail: they are told of later. What ended
// at one of the two moments themselves may be on either side.
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

// row returns how many attempts in a row may have failed last. One that succeeds ends a row if
// it was sent after the row's first had failed. Which is the first cannot be told: a row that
// ejects the endpoint ends with that.
func (c *condition) row() (longest int) {
	n, sent := 0, time.Time{} // the last success, as it was sent
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
