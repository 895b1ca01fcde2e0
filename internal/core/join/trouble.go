package join

import "time"

const (
	lastAnswer = "; its last answer: "
	staysInUse = "; the previous endpoints stay in use"
)

// We log a failure with its consequence, but only if its text differs from that of the last one. In
// this case, the result is true.
func (c *Core) recordFailure(m *mechanism, text, consequence string) bool {
	m.recordError(text, c.now)
	if m.Failure.Text == text {
		return false
	}
	if m.Failure.Text == "" {
		m.Failure.Since = c.now
		if m.Phase == Answered {
			m.Failure.Confirmed = c.validUntil(m)
		}
		if m.LookAgain {
			m.Failure.Confirmed = m.Answered // the source was polled then
		}
	}
	m.Failure.Text = text
	c.addAction(Action{Kind: Warn, ID: m.ID, Text: text + consequence})
	return true
}

func (m *mechanism) consequence() string {
	if m.Answer.Why != "" {
		return lastAnswer + m.Answer.Why
	}
	return staysInUse
}

// Calls fail if the last answer has no usable endpoint and the source cannot give a better one.
func (m *mechanism) makesCallsFail() bool { return m.Answer.Why != "" && m.Failure.Text != "" }

// This ends a failure. It also ends a doubt, unless the source itself ends its doubts (see
// Doubted).
func (c *Core) confirmAnswer(m *mechanism) {
	if m.makesCallsFail() {
		c.markChanged(m)
	}
	c.endTrouble(m, &m.Failure)
	if !m.Doubt.Confirmed.IsZero() {
		c.endTrouble(m, &m.Doubt)
	}
	m.Answered = c.now
}

func (c *Core) endTrouble(m *mechanism, t *Trouble) {
	if t.Text != "" {
		c.addAction(Action{Kind: ShowRecovered, ID: m.ID, After: c.now.Sub(t.Since), Failure: t == &m.Failure})
	}
	*t = Trouble{}
}

func (m *mechanism) recordError(text string, now time.Time) { m.LastError, m.FailedAt = text, now }

// A source reports changes, so its answer is valid now unless the source is in doubt.
func (c *Core) validUntil(m *mechanism) time.Time {
	switch {
	case !m.Doubt.Confirmed.IsZero():
		return m.Doubt.Confirmed
	case m.parent != nil && !m.parent.Doubt.Confirmed.IsZero():
		return m.parent.Doubt.Confirmed
	}
	return c.now
}

// Status is the state of a mechanism that its users see.
type Status struct {
	ID ID
	Mechanism
	Hears
	Phase     Phase
	Listed    bool      // a list is in use instead of the mechanism
	Trying    string    // what the source waits for before its first answer
	Answer    Answer    // empty before the first answer and while a list is in use
	Answered  time.Time // when the source last confirmed an answer
	Failure   Trouble   // the failure of the source since its last answer; set in the phase Failed
	Doubt     Trouble   // the reason why the source cannot confirm its answer at present
	LastError string
	FailedAt  time.Time
}

// IsInUse is true if the mechanism has answered or failed, and no list is in use instead.
func (s *Status) IsInUse() bool { return !s.Listed && s.Phase != Outstanding }

// Trouble returns the present problem. A failure matters more than a doubt.
func (s *Status) Trouble() Trouble {
	if s.Failure.Text != "" {
		return s.Failure
	}
	return s.Doubt
}

// Explained returns the text of errors of calls. noUsable is the reason why no call can succeed. If
// the source has failed, the text begins with this failure.
func (s *Status) Explained(noUsable string) string {
	if noUsable == "" || s.Failure.Text == "" {
		return noUsable
	}
	return s.Failure.Text + lastAnswer + noUsable
}

// Statuses returns the status of the mechanisms in use, in priority order. A mechanism that has
// been replaced by a list is included only while it has a problem. It precedes the mechanisms of
// the list.
func (c *Core) Statuses() (list []Status) {
	for _, m := range c.list {
		if m.list == nil || m.Failure.Text != "" || m.Doubt.Text != "" {
			s := m.Status
			s.Listed = m.list != nil
			list = append(list, s)
		}
		for _, p := range m.list {
			list = append(list, p.Status)
		}
	}
	return list
}
