package join

import "time"

const (
	lastAnswer = "; its last answer: "
	staysInUse = "; the endpoints from before stay in use"
)

// complain records that the source of m failed. If the text differs from the last one, complain
// logs it with the consequence, and returns true.
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

func (m *mechanism) consequence() string {
	if m.answer.Why != "" {
		return lastAnswer + m.answer.Why
	}
	return staysInUse
}

// failsStill reports whether calls fail because of m: its last answer has no usable endpoint, and
// its source has failed after sending it.
func (m *mechanism) failsStill() bool { return m.answer.Why != "" && m.complaint.Text != "" }

// well records that the last answer of m is valid now. This ends a failure, and a doubt unless the
// source must end the doubt itself (see Doubted).
func (c *Core) well(m *mechanism) {
	if m.failsStill() {
		c.touch(m)
	}
	c.over(m, &m.complaint)
	if !m.lost.Confirmed.IsZero() {
		c.over(m, &m.lost)
	}
	m.heard = c.now
}

func (c *Core) over(m *mechanism, t *Trouble) {
	if t.Text != "" {
		c.do(Action{Kind: ShowWell, ID: m.id, After: c.now.Sub(t.Since)})
	}
	*t = Trouble{}
}

func (m *mechanism) wrong(text string, now time.Time) { m.lastError, m.failedAt = text, now }

// confirmedUntil returns the time at which the answer of m was last known to be valid. A source
// that polls confirms its answer with each poll. Any other source reports changes at once, so its
// answer is valid until it reports a failure or a doubt.
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

// Status describes a mechanism on the debug page.
type Status struct {
	ID        ID
	Name      string
	Phase     Phase
	Listed    bool
	Failed    bool
	Trying    string
	Answer    Answer
	Answered  time.Time
	Trouble   Trouble
	LastError string
	FailedAt  time.Time
}

// Look returns the status of the mechanisms in use, in priority order. A mechanism that answered
// with a list precedes the entries of the list, but only while it has a problem.
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
	if s.Trouble.Text == "" { // a failure matters more than a doubt
		s.Trouble = m.lost
	}
	return s
}
