package outlierdetection

import (
	"slices"
	"time"
)

// The end of an ejection does not show that the endpoint answers calls again. With
// Config.ReportEmptied, the endpoint is therefore unproven until it answers a call. The same holds
// for an endpoint that connects after a failed attempt while the Phase is Emptied or HalfOpen:
//
//	Sweep at 50s, its 30s are over    ->  uneject a, which is unproven
//	Answered(a)                       ->  a is no longer unproven
//
// An unproven endpoint may be picked. Phase and the READY share do not count it as working, and its
// ejection time multiplier does not decrease.

// Unproven reports whether the endpoint has not answered a call since its ejection ended.
func (e *Endpoint[T]) Unproven() bool { return e.unproven }

// Doubted reports whether the endpoint is ejected, or has not answered a call since its ejection.
// While Doubted is true, the policy sets Answers and Refusals.
func (e *Endpoint[T]) Doubted() bool { return e.ejected || e.unproven }

// Epoch returns a number that grows when the endpoint is ejected, when the Phase becomes Emptied,
// and when the endpoint has shown that it answers calls. Only calls that began in the current Epoch
// show whether the endpoint has recovered.
func (e *Endpoint[T]) Epoch() uint64 { return e.epoch }

// Unproven returns the number of unproven endpoints.
func (c *Core[T]) Unproven() int { return c.counts.unproven }

// Answered is called when an endpoint has answered a call that began in its current Epoch.
func (c *Core[T]) Answered(e *Endpoint[T]) {
	if e.unproven && e.present {
		c.set(e, false, false)
		c.settle()
	}
}

func (c *Core[T]) set(e *Endpoint[T], ejected, unproven bool) {
	if e.ejected == ejected && e.unproven == unproven {
		return
	}
	if e.ejected != ejected {
		c.touched = append(c.touched, e)
	}
	c.count(e, -1)
	byTime := e.ejected && unproven // the ejection ended with its time, not because of an answer; calls that began during it still count, so the epoch stays the same
	e.ejected, e.unproven = ejected, unproven
	c.count(e, 1)
	c.list(e)
	if byTime {
		c.outcome.Doubts = append(c.outcome.Doubts, e)
	} else {
		c.renew(e)
	}
}

func (c *Core[T]) renew(e *Endpoint[T]) {
	e.epoch++
	c.outcome.Doubts = append(c.outcome.Doubts, e)
}

func (c *Core[T]) list(e *Endpoint[T]) {
	last := len(c.doubted) - 1
	switch {
	case e.Doubted() && e.doubt == 0 && e.present:
		c.doubted = append(c.doubted, e)
		e.doubt = int32(len(c.doubted))
	case !e.Doubted() && e.doubt > 0:
		c.doubted[last].doubt = e.doubt
		c.doubted[e.doubt-1] = c.doubted[last]
		c.doubted, e.doubt = slices.Delete(c.doubted, last, last+1), 0
	}
}

// judge runs at each Sweep while the Phase is Emptied or HalfOpen. The first time, it only makes
// the Phase HalfOpen, because too few calls may have begun since the Phase became Emptied. Later,
// it ends the ejection of each endpoint that has answered calls, unless more than one in ten of its
// calls failed in the last interval. For other ejected endpoints with calls, the ejection time
// begins again. judge reports whether some endpoint is sound (see Phase). Only then may other
// ejections end when their time is over.
func (c *Core[T]) judge(now time.Time) (back bool) {
	if c.phase == Emptied {
		c.phase = HalfOpen
		return false
	}
	for _, e := range slices.Clone(c.doubted) {
		switch {
		case e.Answers > 0 && e.Refusals*10 <= e.Answers+e.Refusals:
			c.set(e, false, false)
		case e.ejected && e.Answers+e.Refusals > 0:
			e.ejectedAt = now
		}
	}
	return c.counts.sound > 0
}
