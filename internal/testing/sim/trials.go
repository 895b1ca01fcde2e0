package sim

import "time"

// tokens bound the trial calls to a priority that fails. There are more of them with each call and
// with time. Several trials may come together: calls run at the same time, and calls of different
// times may end with their connection.
type tokens struct {
	n    float64
	last moment
}

const mostTokens = 3

func (t *tokens) grow(now moment, perCall float64, per time.Duration) {
	now = moment{latest(now.at, t.last.at), max(now.made, t.last.made)} // calls do not end in the order in which they began
	t.n += float64(now.made-t.last.made) * perCall
	if per > 0 {
		t.n += float64(now.at.Sub(t.last.at)) / float64(per)
	}
	t.n, t.last = min(t.n, mostTokens), now
}

// trial reports whether a call to a priority that fails may be a trial: one call in ten, and not
// more than one in a hundred and one an interval.
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
