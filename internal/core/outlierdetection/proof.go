package outlierdetection

import (
	"slices"
	"time"
)

// The end of an ejection does not show that the endpoint answers calls again. With
// Config.ReportEmptied, the endpoint is therefore unproven until it answers a call. The same
// applies to an endpoint that connects after a failed attempt while the Phase is Emptied or
// HalfOpen:
//
//	Sweep at 50s, a's 30s are over    ->  uneject a, which is unproven
//	Answered(a)                       ->  a is no longer unproven
//
// An unproven endpoint may be picked. Phase and the READY share do not count it as working, and its
// ejection time multiplier does not decrease.

// Unproven reports whether the endpoint has not answered a call since its ejection ended.
func (e *Endpoint[T]) Unproven() bool { return e.unproven }

// Doubted reports whether the endpoint is ejected, or has not answered a call since its ejection.
// While Doubted is true, the policy sets Answers and FailedAnswers.
func (e *Endpoint[T]) Doubted() bool { return e.ejected || e.unproven }

// Epoch returns a number that increases when the endpoint is ejected, when the Phase becomes
// Emptied, and when the endpoint has answered enough calls to count as usable again. Only calls
// that began in the current Epoch show whether the endpoint has recovered.
func (e *Endpoint[T]) Epoch() uint64 { return e.epoch }

// Unproven returns the number of unproven endpoints.
func (c *Core[T]) Unproven() int { return c.counts.unproven }

// Answered is called when an endpoint has answered a call that began in its current Epoch.
func (c *Core[T]) Answered(e *Endpoint[T]) {
	if e.unproven && e.present {
		c.setStatus(e, false, false)
		c.updatePhase()
	}
}

func (c *Core[T]) setStatus(e *Endpoint[T], ejected, unproven bool) {
	if e.ejected == ejected && e.unproven == unproven {
		return
	}
	if e.ejected != ejected {
		c.changed = append(c.changed, e)
	}
	c.addToCounts(e, -1)
	// If the ejection ends because its time is over, and not because of an answer, the epoch does not
	// change: calls that began during the ejection still count.
	expired := e.ejected && unproven
	e.ejected, e.unproven = ejected, unproven
	c.addToCounts(e, 1)
	c.updateDoubted(e)
	if expired {
		c.outcome.Doubts = append(c.outcome.Doubts, e)
	} else {
		c.startEpoch(e)
	}
}

func (c *Core[T]) startEpoch(e *Endpoint[T]) {
	e.epoch++
	c.outcome.Doubts = append(c.outcome.Doubts, e)
}

func (c *Core[T]) updateDoubted(e *Endpoint[T]) {
	last := len(c.doubted) - 1
	switch {
	case e.Doubted() && e.doubtedIndex == 0 && e.present:
		c.doubted = append(c.doubted, e)
		e.doubtedIndex = int32(len(c.doubted))
	case !e.Doubted() && e.doubtedIndex > 0:
		c.doubted[last].doubtedIndex = e.doubtedIndex
		c.doubted[e.doubtedIndex-1] = c.doubted[last]
		c.doubted, e.doubtedIndex = slices.Delete(c.doubted, last, last+1), 0
	}
}

// checkRecovery runs at each Sweep while the Phase is Emptied or HalfOpen. The first time, it only
// makes the Phase HalfOpen, because too few calls may have begun since the Phase became Emptied.
// Later, it ends the ejection of each endpoint that has answered calls, unless more than one in ten
// of its calls failed in the last interval. For the other ejected endpoints that received calls, it
// starts the ejection time again. It reports whether some endpoint is sound (see Phase). If not, no
// ejection ends because its time is over.
func (c *Core[T]) checkRecovery(now time.Time) (anySound bool) {
	if c.phase == Emptied {
		c.phase = HalfOpen
		return false
	}
	for _, e := range slices.Clone(c.doubted) {
		switch {
		case e.Answers > 0 && e.FailedAnswers*10 <= e.Answers+e.FailedAnswers:
			c.setStatus(e, false, false)
		case e.ejected && e.Answers+e.FailedAnswers > 0:
			e.ejectedAt = now
		}
	}
	return c.counts.sound > 0
}
