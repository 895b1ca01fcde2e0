package share

import (
	"math"
	"time"
)

const (
	leastBackOff  = time.Second
	mostBackOff   = time.Minute
	healthHalves  = 30 * time.Second // of health halve the back-off
	leastOthers   = 10               // calls that go elsewhere before a probe, for each second of back-off
	mostOthers    = 50
	longRow       = 10
	shortRow      = 5 // enough if its errors are spread over rowSpan
	rowSpan       = time.Second
	hangingCalls  = 2
	lastHanging   = 3 // of the last priority, whose calls are refused instead
	silentCalls   = 5
	silentLatency = 5 // times the usual latency
)

type breaker struct {
	backOff   time.Duration
	elsewhere int // calls that another priority got since the last probe
	probes    int // that have not ended
}

// If no probe is due, we count the call that goes elsewhere. A probe without an answer counts as
// failed, or a priority that hangs would get the next one too soon.
func (b *breaker) isDue(idle time.Duration) bool {
	b.elsewhere++
	backOff := b.backOff
	if b.probes > 0 {
		backOff = min(mostBackOff, 2*backOff)
	}
	others := min(mostOthers, leastOthers*max(1, backOff.Seconds()))
	return float64(b.elsewhere) >= others && idle >= backOff
}

func (b *breaker) probe() {
	b.elsewhere = 0
	b.probes++
}

func (b *breaker) open() { b.backOff = min(mostBackOff, max(leastBackOff, 2*b.backOff)) }

func (b *breaker) recover(health time.Duration) {
	if b.backOff == 0 {
		return // nearly always
	}
	b.backOff = time.Duration(float64(b.backOff) * math.Exp2(-health.Seconds()/healthHalves.Seconds()))
}

// An open breaker stays as it is, and so does one without another READY priority: then the result
// is false.
func (s *Share) trip(now time.Duration, cause Cause) bool {
	s.wanted, s.failing = s.wanted || s.last, s.failing || s.last
	if s.last || s.fraction == 0 {
		return false
	}
	s.breaker.open()
	s.fall(now, 0, cause)
	s.silence.answered()
	s.row.length = 0
	return true
}

// A whole budget has passed without an answer. If the last good answers were filling, the priority
// does not hang: it is so full that all calls expire. The last priority may be full as well without
// a sign of it, so it falls, and returns by slow start all the way.
func (s *Share) hang(now time.Duration) bool {
	s.failing = s.failing || s.last && s.silence.waiting >= lastHanging
	switch {
	case s.fraction == 0:
		return false
	case s.pressure.wasFilling():
		if now-s.cutAt < window || s.last && s.fraction <= lastShare {
			return false
		}
		s.cut(now, Full)
	case !s.last:
		s.trip(now, Hanging)
	case s.fraction > lastShare && s.silence.waiting >= lastHanging:
		threshold := s.fraction
		s.fall(now, lastShare, Hanging)
		s.threshold, s.wanted = threshold, true
	default:
		return false
	}
	return true
}

// Probes that are late for minutes, or from the first one on, are slow by nature. We let that
// become usual, or they would keep the breaker open forever.
func (s *Share) probed(now time.Duration, a answer) {
	if a.hasTime && a.result == Good && (s.pressure.usual == 0 || s.breaker.backOff == mostBackOff) {
		s.pressure.learn(now, a.ratio, a.elapsed)
	}
	if s.breaker.probes--; a.result.good() && !a.late {
		s.fraction = slowStart
		s.renew(now)
	} else {
		s.breaker.open()
	}
}

// A row is errors in a row, over all endpoints. Only calls that have begun after the first error
// count: those that were under way fail together when a server fails once. Errors are often faster
// than good answers, so a row of ten must also last longer than good answers take at the moment.
type row struct {
	number uint32 // of the row
	length int
	since  time.Duration
}

// number is the row's when the call began. The result is true if the row is long enough to open the
// breaker.
func (r *row) end(now time.Duration, number uint32, result Result, patience time.Duration) bool {
	switch {
	case result == Expired || result == Cancelled:
	case result.good() || result == Refused:
		if number == r.number {
			r.length = 0
		}
	case r.length == 0:
		r.number++
		r.length, r.since = 1, now
	case number == r.number:
		r.length++
		span := now - r.since
		return r.length >= longRow && span >= min(quiet, patience+patience/2) || r.length >= shortRow && span >= rowSpan
	}
	return false
}

// silence is the time since the first of the calls that wait for an answer, while none comes.
type silence struct {
	number  uint32 // grows with each answer
	waiting int    // calls that have begun since the last answer, also those that have expired
	since   time.Duration
	endless bool // the first of them has no deadline
	noticed bool // it has lasted, and calls go elsewhere
}

func (s *silence) begin(now time.Duration, endless bool) (number uint32) {
	if s.waiting++; s.waiting == 1 {
		s.since, s.endless = now, endless
	}
	return s.number
}

func (s *silence) answered() { *s = silence{number: s.number + 1} }

func (s *silence) cancel(number uint32) {
	if number == s.number && s.waiting > 0 {
		s.waiting--
	}
}

// Two calls must wait, and timers may fire a little early.
func (s *silence) exceeds(now, budget time.Duration) bool {
	return s.waiting >= hangingCalls && now-s.since >= budget-budget/1000
}

func (s *silence) lasts(now time.Duration, usual latency) bool {
	s.noticed = s.waiting >= silentCalls && usual > 0 && now-s.since >= max(quiet, silentLatency*time.Duration(usual))
	return s.noticed
}

// streams are the open streams that have begun in this epoch. One that stays open is an answer.
type streams struct {
	open  int
	since time.Duration // since when none of them has failed or was cancelled
}

func (s *streams) begin(now time.Duration) {
	if s.open++; s.open == 1 {
		s.since = now
	}
}

func (s *streams) end(now time.Duration, r Result) {
	s.open--
	if !r.good() {
		s.since = now
	}
}

func (s *streams) answer(now time.Duration) bool {
	if s.open == 0 || now-s.since < streamAge {
		return false
	}
	s.since = now
	return true
}
