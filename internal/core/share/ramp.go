package share

import (
	"math"
	"time"
)

// We keep 0.7 of the share, and open the breaker if that is too little.
func (s *Share) cut(now time.Duration, cause Cause) {
	to := decrease * s.fraction
	if s.last {
		s.wanted = true
		if to = max(to, lastShare); to >= s.fraction {
			s.renew(now)
			return
		}
	}
	if to < slowStart {
		s.trip(now, cause)
		return
	}
	s.fall(now, to, cause)
}

// After several cuts, the threshold still follows the share before the first one: a row of cuts
// finds the capacity from above, and growth should end just below it.
func (s *Share) fall(now time.Duration, to float64, cause Cause) {
	if s.fraction > s.fallen {
		s.threshold = decrease * s.fraction
	}
	if s.carried = max(s.carried, s.fraction); cause == Full || cause == Slow {
		s.carried = to
	}
	s.fraction, s.fallen, s.cause = to, to, cause
	s.renew(now)
}

// A new epoch begins: calls from before it tell us nothing about the new share.
func (s *Share) renew(now time.Duration) {
	s.epoch++
	s.cutAt, s.grownAt = now, now
	s.answers = tally{began: now}
	s.pressure.renew(now)
	s.streams, s.breaker.probes = streams{}, 0
}

// The share grows by the time since the last good answer, so that slow clients grow as fast as
// others, but at most by that of most.
func (s *Share) grow(now, most time.Duration) {
	since := now - s.grownAt
	step := min(since, most).Seconds()
	switch {
	case s.fraction == 0: // after a stream has stayed open, which goes on answering in the same epoch
		s.fraction, s.cutAt, s.grownAt = slowStart, now, now
		return
	case s.fraction == 1:
		s.breaker.recover(since)
	case now-s.cutAt < window:
		return
	case s.answers.failures > 0:
	case s.fraction < s.threshold:
		s.fraction = min(s.threshold, s.fraction*math.Exp2(step/s.doubling.Seconds()))
	default:
		s.fraction = min(1, s.fraction+increase*step)
	}
	s.grownAt = now
}
