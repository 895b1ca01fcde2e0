package share

import (
	"math"
	"time"
)

const (
	leastBackOff  = time.Second
	mostBackOff   = time.Minute
	healthHalves  = 30 * time.Second // it takes this much time in good health to halve the back-off
	leastOthers   = 10               // so many calls must go elsewhere before we probe again, per second of back-off
	mostOthers    = 50
	longRow       = 10
	shortRow      = 5 // enough if the row lasts for rowSpan
	rowSpan       = time.Second
	hangingCalls  = 2
	lastHanging   = 3 // the same for the last priority, which can't send its calls elsewhere
	silentCalls   = 5
	silentLatency = 5 // a silence must last for this many times the usual latency
)

type breaker struct {
	backOff   time.Duration
	elsewhere int
	probes    int
}

// isDue returns true if it's time for a probe. If it isn't, the call counts as one that goes
// elsewhere. An unanswered probe counts as failed. If it didn't, a priority that hangs would get
// its next probe too soon.
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
		return
	}
	b.backOff = time.Duration(float64(b.backOff) * math.Exp2(-health.Seconds()/healthHalves.Seconds()))
}

// trip returns false if nothing changes, because the breaker is already open or there's no other
// READY priority.
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

// hang is called when we've waited for a whole budget and got no answer. If the last good answers
// show that the priority was filling up, it doesn't hang; it's just so full that all calls expire.
// That can also happen to the last priority without any such sign, so its share falls, and we use
// slow start all the way back.
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

// probed is called when a probe has ended. If probes have been late for minutes, or ever since the
// first one, the calls are slow by nature. We have to learn that as the usual latency, or the
// breaker would never close again.
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

// A row is a run of errors across all endpoints. We only count calls that began after the first
// error, since everything in flight fails together when a server fails once. Also, errors tend to
// be faster than good answers, so even a row of ten has to last longer than good answers currently
// take.
type row struct {
	number uint32
	length int
	since  time.Duration
}

// end counts an error or a good answer. number is the row's number from when the call began. It
// returns true if the row is now long enough to open the breaker.
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

// silence measures how long calls have been waiting without a single answer coming back.
type silence struct {
	number  uint32
	waiting int // calls since the last answer, even those that have expired
	since   time.Duration
	lostAt  time.Duration // when a call was last lost with its connection
	endless bool
	noticed bool // calls go elsewhere because of it
}

func (s *silence) begin(now time.Duration, endless bool) (number uint32) {
	if s.waiting++; s.waiting == 1 {
		s.since, s.endless = now, endless
	}
	return s.number
}

func (s *silence) answered() { *s = silence{number: s.number + 1} }

func (s *silence) cancel(number uint32) {
	if number == s.number {
		s.waiting--
	}
}

// exceeds requires at least two waiting calls. Timers may fire a little early, so we allow for
// that.
func (s *silence) exceeds(now, budget time.Duration) bool {
	return s.waiting >= hangingCalls && now-s.since >= budget-budget/1000
}

// length may be too short after a call was lost, as we don't know how long the rest have waited.
func (s *silence) length(now time.Duration) time.Duration { return now - max(s.since, s.lostAt) }

func (s *silence) lasts(now time.Duration, usual latency) bool {
	s.noticed = s.waiting >= silentCalls && usual > 0 && s.length(now) >= max(quiet, silentLatency*time.Duration(usual))
	return s.noticed
}

// streams tracks the open streams of this epoch. If one stays open for long enough, that's an
// answer.
type streams struct {
	open  int
	since time.Duration // since then, none has failed or was cancelled
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
