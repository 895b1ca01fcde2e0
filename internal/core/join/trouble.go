package join

import "time"

const (
	lastAnswer = "; its last answer: "
	staysInUse = "; the endpoints from before stay in use"
)

// complain records a problem of m. If the text of the problem is new, complain logs a warning with
// the text and the consequence, and returns true.
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

// consequence describes what follows from a failure after an answer.
func (m *mechanism) consequence() string {
	if m.answer.Why != "" {
		return lastAnswer + m.answer.Why
	}
	return staysInUse
}

// failsStill reports whether calls see a failure because no call can be made with the last answer.
func (m *mechanism) failsStill() bool { return m.answer.Why != "" && m.complaint.Text != "" }

// well records that the last answer of m is valid. A doubt that does not concern the answer
// remains.
func (c *Core) well(m *mechanism) {
	if m.failsStill() {
		c.touch(m) // calls no longer see the failure
	}
	c.over(m, &m.complaint)
	if !m.lost.Confirmed.IsZero() {
		c.over(m, &m.lost)
	}
	m.heard = c.now
}

// over records that a problem is over.
func (c *Core) over(m *mechanism, t *Trouble) {
	if t.Text != "" {
		c.do(Action{Kind: ShowWell, ID: m.id, After: c.now.Sub(t.Since)})
	}
	*t = Trouble{}
}

// wrong records text as the last problem of m's source.
func (m *mechanism) wrong(text string, now time.Time) { m.lastError, m.failedAt = text, now }

// confirmedUntil returns when the answer of m was last known to be valid. A source that polls
// confirms its answer each time it answers. A source that pushes updates confirms its answer until
// it reports a change or a doubt.
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

// Status describes a mechanism for the debug page.
type Status struct {
	ID        ID
	Name      string
	Phase     Phase
	Listed    bool // a list is in use in place of the mechanism
	Failed    bool
	Trying    string
	Answer    Answer
	Answered  time.Time // when the source last confirmed its answer, or zero if it never did
	Trouble   Trouble   // the present problem
	LastError string    // the last problem, even if that problem is over
	FailedAt  time.Time // when LastError occurred
}

// Look returns the status of each mechanism in use, in priority order. A mechanism that answered
// with a list precedes the entries of the list while it has a problem.
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
	if s.Trouble.Text == "" { // a failure takes precedence
		s.Trouble = m.lost
	}
	return s
}
