package share

import "time"

type Result uint8

const (
	Good        Result = iota // answered, possibly with an error from the application
	Partial                   // the deadline passed after the first bytes: an answer, but we can't measure it
	Refused                   // RESOURCE_EXHAUSTED
	Unavailable               // UNAVAILABLE
	Lost                      // UNAVAILABLE without a single byte: its connection was lost
	Expired                   // DEADLINE_EXCEEDED without a single byte
	Failed                    // any of INTERNAL, UNKNOWN and DATA_LOSS
	Cancelled
)

func (r Result) good() bool { return r == Good || r == Partial }

func (r Result) full() bool { return r == Refused || r == Unavailable || r == Expired }

type Blame uint8

const (
	ByResult Blame = iota // same as the result
	Late                  // a failure: the answer is late, and those of other endpoints aren't
	FullNow               // it expired in a full queue, so ignore it
)

// End is called when a call ends. When a priority is full, outlier detection must not eject any of
// its endpoints, because that would only make the remaining ones fuller. We can usually tell that
// it's full because several endpoints had bad answers. Either that was in the last few seconds and
// the last good answers were late, or it was before the share was cut, since a share grows until
// it's full again. But if a server takes the newest call in its queue first, good answers are quick
// even then. In that case, if the endpoint has answered some other call in the meantime, we know
// that it doesn't hang, so it must be full. Of an untimed call, we don't know when it began, so we
// want most endpoints to fail.
func (s *Share) End(now time.Duration, c Call, r Result) Blame {
	filling, alive := s.pressure.wasFilling(), c.endpoint.answeredSince(c.began)
	if c.kind == untimed {
		alive = c.endpoint.answeredSince(now-window) && s.endpoints.mostFail()
	}
	full, since := filling || s.fraction < 1, now
	if s.fraction < 1 {
		since = s.cutAt
	}
	if c.endpoint != nil && r == Good {
		c.endpoint.answered = now
	}
	own, late := s.end(now, c, r)
	own = own && (!full || !s.endpoints.othersWereBad(since, c.endpoint))
	switch {
	case own && late && r != Lost:
		return Late
	case !own && (filling || alive) && (r == Expired || r == Partial):
		return FullNow
	}
	return ByResult
}

// end does the work of End. ownFault means that the endpoint, rather than the whole priority, is to
// blame for a bad or late answer.
func (s *Share) end(now time.Duration, c Call, r Result) (ownFault, isLate bool) {
	current := c.stamp.epoch == s.epoch
	answered := r != Lost
	if r == Lost || r == Unavailable && c.kind == stream {
		r = s.lost(now, c.began)
	}
	c.method.end(c.began)
	if r.good() {
		s.succeeded(now)
	}
	if current && c.kind == stream {
		s.streams.end(now, r)
	}
	switch {
	case r == Cancelled:
		s.silence.cancel(c.wait)
		if current && s.fraction == 0 {
			s.breaker.probes--
		}
		return false, false
	case !answered:
		s.silence.cancel(c.wait)
		s.silence.lostAt = now
	case r == Expired:
		if current && c.budget > 0 && s.silence.exceeds(now, c.budget) && s.hang(now) {
			return false, false
		}
	default:
		if r.good() && s.last && s.cause == Hanging && current && c.budget > 0 && s.silence.exceeds(now, c.budget) {
			s.forget(now)
		}
		s.silence.answered()
	}
	if s.row.end(now, c.stamp.row, r, s.recent) && current && s.trip(now, Broken) {
		return false, false
	}
	if !current || c.kind == untimed {
		return false, false
	}
	a := s.measure(now, c, r)
	switch {
	case s.fraction == 0:
		s.probed(now, a)
		return false, false
	case r == Failed:
		return false, false // We leave a broken priority, but an error is no sign of load, so it never causes a cut.
	case s.endpoints.isOwnFault(now, c.began, c.endpoint, r.full() || a.late):
		return true, a.late
	}
	s.judge(now, a)
	return false, false
}

// lost says what a call counts as if its connection was lost. All those on one connection are lost
// at once, even if the server isn't full. If calls that began later are lost too, it may well be,
// unless there's been a good answer and ten seconds.
func (s *Share) lost(now, began time.Duration) Result {
	recent := now-s.lostAt <= remembered
	again := s.lostAt > 0 && began > s.lostAt && (recent || s.goodAt < s.lostAt)
	if s.lostAt == 0 || !recent {
		s.lostAt = now
	}
	if again {
		return Unavailable
	}
	return Failed
}

// forget is called when the last priority was hanging and answers again. Calls that expired earlier
// tell us nothing about its queue now.
func (s *Share) forget(now time.Duration) {
	s.pressure.mean = s.pressure.usual
	s.answers = tally{began: now}
}

type answer struct {
	result  Result
	ratio   float64 // how much of its budget the answer took
	hasTime bool
	late    bool
	elapsed time.Duration
}

func (s *Share) measure(now time.Duration, c Call, r Result) answer {
	took, a := now-c.began, answer{result: r, elapsed: now - s.answerAt}
	if r == Good {
		s.recent += time.Duration(float64(took-s.recent) * weight(a.elapsed))
		s.methods.usual.learn(took, a.elapsed)
		c.method.learn(now, took, a.elapsed)
	}
	budget := c.budget
	if budget == 0 {
		budget = c.method.budget()
	}
	if budget > 0 && r != Partial {
		a.hasTime, a.ratio = true, float64(took)/float64(budget)
		a.late = s.pressure.isLate(a.ratio)
	}
	return a
}

func (s *Share) judge(now time.Duration, a answer) {
	s.answerAt = now
	if s.answers.total == 0 && now-s.answers.began > stale {
		s.answers.began = now
	}
	s.answers.total++
	if a.result.full() {
		s.answers.failures++
	}
	s.pressure.add(now, a)
	full := now-s.answers.began >= window
	failing := full && s.answers.failures >= 2 && 8*s.answers.failures >= s.answers.total
	cuttable := !s.last || s.fraction < 1
	s.wanted = s.wanted || s.last && failing
	switch {
	case failing && (cuttable || s.pressure.wasFilling()):
		s.cut(now, Full)
	case cuttable && s.pressure.lasts(now):
		s.cut(now, Slow)
	case a.result.good():
		s.grow(now, time.Second)
	}
	if full && s.answers.total >= enough {
		if s.answers.failures == 0 && s.fraction == 1 {
			s.wanted = false
		}
		s.answers = tally{began: now}
	}
}
