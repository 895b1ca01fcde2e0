package sim

import "time"

// tokens are calls that may go to a priority that fails, to see whether it still does. They
// come with calls and with time. A few may come at once: calls are made at once, and some that were made
// one after the other end at once, with their connection.
type tokens struct {
	n    float64
	last moment
}

const mostTokens = 3

func (t *tokens) grow(now moment, perCall float64, per time.Duration) {
	now = moment{latest(now.at, t.last.at), max(now.made, t.last.made)} // calls do not end in the order in which they begin
	t.n += float64(now.made-t.last.made) * perCall
	if per > 0 {
		t.n += float64(now.at.Sub(t.last.at)) / float64(per)
	}
	t.n, t.last = min(t.n, mostTokens), now
}

// trial says whether a call to a priority that fails may be one that is to show whether it
// still does: one in ten, and one in a hundred and one an interval.
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
