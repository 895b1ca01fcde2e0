package share

import (
	"math"
	"time"
)

// cut keeps 0.7 of the share, or opens the breaker if that leaves too little.
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

// fall reduces the share. If that happens several times in a row, the threshold still comes from
// the share before the first time. A row of cuts approaches the capacity from above, and we want
// growth to stop just below it.
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

// renew starts a new epoch. Calls that began earlier tell us nothing about the new share.
func (s *Share) renew(now time.Duration) {
	s.epoch++
	s.cutAt, s.grownAt = now, now
	s.answers = tally{began: now}
	s.pressure.renew(now)
	s.streams, s.breaker.probes = streams{}, 0
}

// grow lets the share grow with the time since the last good answer, but never by more than most.
// This way, it doesn't grow more slowly for clients with few calls.
func (s *Share) grow(now, most time.Duration) {
	since := now - s.grownAt
	step := min(since, most).Seconds()
	switch {
	case s.fraction == 0: // a stream has stayed open; it keeps counting as an answer within this epoch
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
