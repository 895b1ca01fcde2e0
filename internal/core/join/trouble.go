package join

import "time"

const (
	lastAnswer = "; its last answer: "
	staysInUse = "; the endpoints from before stay in use"
)

// complain notes what is wrong with m, warns if that is new, with what follows from it, and
// reports whether it was.
func (c *Core) complain(m *mechanism, text, consequence string) bool {
	m.wrong(text, c.now)
	if m.complaint.Text == text {
		return false
	}
	if m.complaint.Text == "" {
		m.complaint.Since, m.complaint.Confirmed = c.now, c.confirmedUntil(m)
	}
	m.complaint.Text = text
	c.do(Action{Kind: Warn, ID: m.id, Text: text + consequence})
	return true
}

// consequence says what follows from a failure after an answer.
func (m *mechanism) consequence() string {
	if m.answer.Why != "" {
		return lastAnswer + m.answer.Why
	}
	return staysInUse
}

// failsStill reports whether calls see a failure beside an answer with which none can be made.
func (m *mechanism) failsStill() bool { return m.answer.Why != "" && m.complaint.Text != "" }

// well notes that the last answer of m is current. A doubt that was not about the answer stays.
func (c *Core) well(m *mechanism) {
	if m.failsStill() {
		c.touch(m) // calls see the failure no longer
	}
	c.over(m, &m.complaint)
	if !m.lost.Confirmed.IsZero() {
		c.over(m, &m.lost)
	}
	m.heard = c.now
}

// over notes that something is wrong no longer.
func (c *Core) over(m *mechanism, t *Trouble) {
	if t.Text != "" {
		c.do(Action{Kind: ShowWell, ID: m.id, After: c.now.Sub(t.Since)})
	}
	*t = Trouble{}
}

// wrong notes what is wrong with m's source.
func (m *mechanism) wrong(text string, now time.Time) { m.lastError, m.failedAt = text, now }

// confirmedUntil returns until when the answer of m is confirmed, if it has one. A source that is
// asked has confirmed it when it last answered. One that tells what is new unasked has
// confirmed it until it says otherwise, or cannot be heard.
func (c *Core) confirmedUntil(m *mechanism) time.Time {
	switch {
	case m.phase != Answered:
		return time.Time{}
	case m.from == predecessor:
		return m.until
	case m.hears.LookAgain:
		return m.heard
	case !m.lost.Confirmed.IsZero():
		return m.lost.Confirmed
	case m.whole != nil && !m.whole.lost.Confirmed.IsZero():
		return m.whole.lost.Confirmed
	}
	return c.now
}

// Status is what is known of a mechanism, for those who look.
type Status struct {
	ID        ID
	Name      string
	Phase     Phase
	Listed    bool // its parts are in use in its place
	Failed    bool
	Trying    string
	Answer    Answer
	Answered  time.Time // when its source last stood by its answer, zero for never
	Trouble   Trouble   // now
	LastError string    // what was wrong last, even if it is over,
	FailedAt  time.Time // and when
}

// Look returns what is known of each mechanism in use, in priority order. One that gave a list of
// parts stands before them while something is wrong with it.
func (c *Core) Look() (list []Status) {
	for _, m := range c.list {
		if m.parts == nil || m.complaint.Text != "" || m.lost.Text != "" {
			list = append(list, m.status())
		}
		for _, p := range m.parts {
			list = append(list, p.status())
		}
	}
	return list
}

func (m *mechanism) status() Status {
	s := Status{ID: m.id, Name: m.Name, Phase: m.phase, Listed: m.parts != nil, Failed: m.phase == Failed, Trying: m.trying, Answer: m.answer, Answered: m.heard, Trouble: m.complaint, LastError: m.lastError, FailedAt: m.failedAt}
	if s.Trouble.Text == "" { // its own complaint counts more
		s.Trouble = m.lost
	}
	return s
}
