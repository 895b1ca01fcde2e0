package join

import "time"

const (
	lastAnswer = "; its last answer: "
	staysInUse = "; the previous endpoints stay in use"
)

// recordFailure logs a failure and its consequence, unless it's the same text again. It returns
// true if it has logged anything.
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
		if m.ResolveNow {
			m.Failure.Confirmed = m.Answered // we last polled the source then
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

// makesCallsFail returns true if the last answer has no usable endpoint and the source can't give
// us a better one.
func (m *mechanism) makesCallsFail() bool { return m.Answer.Why != "" && m.Failure.Text != "" }

// confirmAnswer ends a failure. It also ends a doubt, unless the source does that itself (see
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

// validUntil returns when m's answer was last known to be valid. Sources report changes, so that's
// now, unless the source is in doubt.
func (c *Core) validUntil(m *mechanism) time.Time {
	switch {
	case !m.Doubt.Confirmed.IsZero():
		return m.Doubt.Confirmed
	case m.parent != nil && !m.parent.Doubt.Confirmed.IsZero():
		return m.parent.Doubt.Confirmed
	}
	return c.now
}

type Status struct {
	ID ID
	Mechanism
	Hears
	Phase     Phase
	Listed    bool
	Trying    string // only before the first answer
	Answer    Answer // empty before the first answer and while a list is in use
	Answered  time.Time
	Failure   Trouble // the current failure; always set in phase Failed
	Doubt     Trouble
	LastError string
	FailedAt  time.Time
}

// IsInUse is true if the mechanism has answered or failed and hasn't been replaced by a list.
func (s *Status) IsInUse() bool { return !s.Listed && s.Phase != Outstanding }

// Trouble returns the current problem, if any. If there's a failure as well as a doubt, the failure
// wins.
func (s *Status) Trouble() Trouble {
	if s.Failure.Text != "" {
		return s.Failure
	}
	return s.Doubt
}

// Explained returns the text for the errors of calls, given noUsable, the reason why no call can
// succeed. If the source has failed, the text starts with that.
func (s *Status) Explained(noUsable string) string {
	if noUsable == "" || s.Failure.Text == "" {
		return noUsable
	}
	return s.Failure.Text + lastAnswer + noUsable
}

// Statuses returns the status of the mechanisms in use, in order of priority. If a mechanism was
// replaced by a list, we include it only while it has a problem, in front of the entries of its
// list.
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
