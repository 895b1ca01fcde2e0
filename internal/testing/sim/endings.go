package sim

import (
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

type ending struct {
	sent   time.Time
	at     time.Time
	failed bool
}

// history is the number of results that are kept for each endpoint. It is more than an interval
// has.
const history = 2000

// attemptEnded records the result of an attempt, shortly after outlier detection does.
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
		return // the attempt began before the last failure, so it says nothing about the present
	}
	if c.answered = time.Now(); c.proven.IsZero() {
		c.proven = c.answered
	}
	if c.shown.IsZero() && sent.Sub(c.proven) > byTarget.interval {
		c.shown = c.answered
	}
}

// within counts the attempts in a period: those that may have failed, those that have certainly
// succeeded, and all. Attempts that have not ended may be about to fail. Those that ended exactly
// at the beginning or end of the period may not belong to it.
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

// row returns the highest possible number of consecutive failures. A success interrupts them only
// if its attempt was sent after the first failure.
func (c *condition) row() (longest int) {
	n, sent := 0, time.Time{}
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
