package join

import "time"

const (
	lastAnswer = "; its last answer: "
	staysInUse = "; the previous endpoints stay in use"
)

// recordFailure records that the source of m has failed. If the text differs from that of the last
// failure, recordFailure logs it with the consequence, and returns true.
func (c *Core) recordFailure(m *mechanism, text, consequence string) bool {
	m.recordError(text, c.now)
	if m.failure.Text == text {
		return false
	}
	if m.failure.Text == "" {
		m.failure.Since = c.now
		switch {
		case m.phase != Answered:
		case m.accepts.LookAgain:
			m.failure.Confirmed = m.confirmedAt // the source was polled then
		default:
			m.failure.Confirmed = c.validUntil(m)
		}
	}
	m.failure.Text = text
	c.addAction(Action{Kind: Warn, ID: m.id, Text: text + consequence})
	return true
}

func (m *mechanism) consequence() string {
	if m.answer.Why != "" {
		return lastAnswer + m.answer.Why
	}
	return staysInUse
}

// makesCallsFail reports whether calls fail because of m: its last answer has no usable endpoint,
// and its source has failed after this answer.
func (m *mechanism) makesCallsFail() bool { return m.answer.Why != "" && m.failure.Text != "" }

// confirmAnswer records that the last answer of m is valid now. This ends a failure. It also ends a
// doubt, unless the source itself ends its doubts (see Doubted).
func (c *Core) confirmAnswer(m *mechanism) {
	if m.makesCallsFail() {
		c.markChanged(m)
	}
	c.endTrouble(m, &m.failure)
	if !m.doubt.Confirmed.IsZero() {
		c.endTrouble(m, &m.doubt)
	}
	m.confirmedAt = c.now
}

func (c *Core) endTrouble(m *mechanism, t *Trouble) {
	if t.Text != "" {
		c.addAction(Action{Kind: ShowRecovered, ID: m.id, After: c.now.Sub(t.Since), Failure: t == &m.failure})
	}
	*t = Trouble{}
}

func (m *mechanism) recordError(text string, now time.Time) { m.lastError, m.failedAt = text, now }

// validUntil returns the time at which the answer of m was last known to be valid. A source reports
// changes, so this is the present, unless the source is in doubt.
func (c *Core) validUntil(m *mechanism) time.Time {
	switch {
	case !m.doubt.Confirmed.IsZero():
		return m.doubt.Confirmed
	case m.parent != nil && !m.parent.doubt.Confirmed.IsZero():
		return m.parent.doubt.Confirmed
	}
	return c.now
}

// Status describes a mechanism.
type Status struct {
	ID               ID
	Name             string
	OutlierDetection string
	LookAgain        bool
	Phase            Phase
	Listed           bool // a list is in use instead of the mechanism
	Trying           string
	Answer           Answer
	Answered         time.Time
	Failure          Trouble // in the phase Failed, the reason
	Doubt            Trouble
	LastError        string
	FailedAt         time.Time
}

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
		if m.list == nil || m.failure.Text != "" || m.doubt.Text != "" {
			list = append(list, m.status())
		}
		for _, p := range m.list {
			list = append(list, p.status())
		}
	}
	return list
}

func (m *mechanism) status() Status {
	return Status{
		ID: m.id, Name: m.Name, OutlierDetection: m.OutlierDetection, LookAgain: m.accepts.LookAgain,
		Phase: m.phase, Listed: m.list != nil, Trying: m.trying, Answer: m.answer, Answered: m.confirmedAt,
		Failure: m.failure, Doubt: m.doubt, LastError: m.lastError, FailedAt: m.failedAt,
	}
}
