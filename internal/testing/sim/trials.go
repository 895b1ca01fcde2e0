package sim

import "time"

// tokens is a token bucket that limits the trial calls to a failing priority. It fills with calls
// and with time. It can hold several tokens, because concurrent calls may be trials at the same
// time.
type tokens struct {
	n    float64
	last moment
}

const mostTokens = 3

func (t *tokens) grow(now moment, perCall float64, per time.Duration) {
	now = moment{latest(now.at, t.last.at), max(now.made, t.last.made)} // calls may end in any order
	t.n += float64(now.made-t.last.made) * perCall
	if per > 0 {
		t.n += float64(now.at.Sub(t.last.at)) / float64(per)
	}
	t.n, t.last = min(t.n, mostTokens), now
}

// trial reports whether a call to a failing priority may be a trial. There is one for
// each hundred calls and one for each interval, but never more than one in ten calls.
func (s *tierState) trial(now moment) bool {
	s.slow.grow(now, 0.1, 0)
	s.few.grow(now, 0.01, byTarget.interval)
	if s.slow.n < 1 || s.few.n < 1 {
		return false
	}
	s.slow.n--
	s.few.n--
	return true
}
