package outlierdetection

import (
	"slices"
	"time"
)

// That time has passed proves nothing of an endpoint that was ejected. Where the policy
// reports tiers that are emptied, one is Unproven from when its ejection has ended by time
// alone, or when it connects after a failed attempt while its tier is emptied, until it
// answers:
//
//	Sweep at 50s, its 30s are over    ->  uneject a, which is unproven
//	Answered(a)                       ->  a is like any other
//
// It may be picked meanwhile, and counts as failed: for Config.ReportEmptied, and for what
// part of the tier is READY. Its multiplier does not fall.

// Unproven reports whether the endpoint is so.
func (e *Endpoint[T]) Unproven() bool { return e.unproven }

// Doubted reports whether the endpoint has to answer: it is ejected or unproven.
func (e *Endpoint[T]) Doubted() bool { return e.ejected || e.unproven }

// Epoch is a number that grows when the endpoint is ejected, when its tier is emptied, and
// when it has no more to prove. Only a call that began in the Epoch says whether the
// endpoint is well.
func (e *Endpoint[T]) Epoch() uint64 { return e.epoch }

// Unproven returns how many endpoints are unproven.
func (c *Core[T]) Unproven() int { return c.counts.unproven }

// Answered handles that a call that began in the endpoint's Epoch was answered.
func (c *Core[T]) Answered(e *Endpoint[T]) {
	if e.unproven && e.present {
		c.set(e, false, false)
		c.settle()
	}
}

// set says whether an endpoint is ejected, or unproven, from now on.
func (c *Core[T]) set(e *Endpoint[T], ejected, unproven bool) {
	if e.ejected == ejected && e.unproven == unproven {
		return
	}
	if e.ejected != ejected {
		c.touched = append(c.touched, e)
	}
	c.count(e, -1)
	byTime := e.ejected && unproven // what answered meanwhile has proven it
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

// list keeps an endpoint in the list of those that are doubted, or takes it out.
func (c *Core[T]) list(e *Endpoint[T]) {
	last := len(c.doubted) - 1
	switch {
	case e.Doubted() && e.doubt == 0 && e.present:
		c.doubted = append(c.doubted, e)
		e.doubt = len(c.doubted)
	case !e.Doubted() && e.doubt > 0:
		c.doubted[last].doubt = e.doubt
		c.doubted[e.doubt-1] = c.doubted[last]
		c.doubted, e.doubt = slices.Delete(c.doubted, last, last+1), 0
	}
}

// judge looks at the calls that an emptied tier has had for one interval, whatever its
// ejection times. The first interval does not count: too few calls may have begun since
// it was emptied. The tier comes back with those that have answered, however few: at most
// one in ten of their calls failed. Those that were called, and have not, stay ejected from
// now on; the ejections of others end by time.
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
