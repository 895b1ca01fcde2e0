package join

import "time"

// Wait is a reason to wait. docs/waits.md lists all waits.
type Wait int

// The waits of a Core.
const (
	// ForFirst is the wait for the first mechanism that has not failed, while the channel has no
	// endpoints. Its timer is not stopped when that mechanism answers, but then has no effect.
	ForFirst Wait = iota
	// ForList is the wait of a new list until it is ready: one of its mechanisms has answered, and
	// all others have answered or failed. Until then, the previous endpoints stay in use. There is
	// no wait if no mechanism in use has ever answered. Config.Patience limits the wait. Further
	// lists do not extend it; otherwise, a source that changes its list often would keep old
	// endpoints in use. Once the limit is reached, a further list waits again only if it contains a
	// new source.
	ForList
	// ForWord is the wait for a source's first answer before the stored answer is used.
	ForWord
	// ForCalls and ForLog begin when a source reports what it waits for before its first answer. When
	// ForCalls is over, the errors of calls contain this text; when ForLog is over, it is logged.
	ForCalls
	ForLog
)

const (
	// Patience is the default of Config.Patience. It applies to channels without a failover
	// timeout.
	Patience = 10 * time.Second
	// Hush is the limit of ForWord. It is much shorter than gRPC's limit of 20 s for a connection
	// attempt, because calls should not wait for a server that hangs if there is a stored answer.
	Hush = 2 * time.Second
	// HushOfPart is the limit of ForWord for a mechanism in a stored list. Calls have already waited
	// for Hush, because the source of the list did not answer. The limit suffices for a DNS lookup.
	HushOfPart = 200 * time.Millisecond
	// CallsSayAfter is the limit of ForCalls.
	CallsSayAfter = 200 * time.Millisecond
	// LogSaysAfter is the limit of ForLog.
	LogSaysAfter = 2 * time.Second
)

func (c *Core) limit(w Wait, m *mechanism) time.Duration {
	switch {
	case w == ForCalls:
		return CallsSayAfter
	case w == ForLog:
		return LogSaysAfter - CallsSayAfter
	case w == ForWord && m.whole != nil && m.whole.from == memory:
		return HushOfPart
	case w == ForWord:
		return Hush
	}
	return c.config.Patience
}

// Timer identifies a timer by its wait and its mechanism. The mechanism is 0 for ForFirst.
type Timer struct {
	Wait Wait
	ID   ID
}

type waits [ForLog + 1]progress

type progress int

const (
	notBegun progress = iota
	running
	over
)

func (c *Core) begin(w Wait, m *mechanism) {
	of, id := c.of(m)
	of[w] = running
	c.do(Action{Kind: StartTimer, ID: id, Timer: Timer{w, id}, After: c.limit(w, m)})
}

// end stops the timers of the given waits of m, and resets the waits, so that they can begin again.
func (c *Core) end(m *mechanism, list ...Wait) {
	of, id := c.of(m)
	for _, w := range list {
		if of[w] == running {
			c.do(Action{Kind: StopTimer, ID: id, Timer: Timer{w, id}})
		}
		of[w] = notBegun
	}
}

func (c *Core) of(m *mechanism) (*waits, ID) {
	if m == nil {
		return &c.waits, 0
	}
	return &m.waits, m.id
}

// spoke ends the waits for m's first answer, because the source has answered or failed.
func (c *Core) spoke(m *mechanism) {
	c.end(m, ForWord, ForCalls, ForLog)
	m.trying = ""
}

// Waited is called when a timer fires.
func (c *Core) Waited(now time.Time, t Timer) []Action {
	m := c.at(now, t.ID)
	if c.closed || m == nil && t.Wait != ForFirst {
		return nil
	}
	of, _ := c.of(m)
	of[t.Wait] = over
	switch t.Wait {
	case ForFirst:
		c.changed = c.changed || !c.sent
	case ForList:
		c.turn()
	case ForWord:
		if m.phase == Outstanding {
			c.recall(m, "nothing was heard for "+m.hush.String())
		}
	case ForCalls:
		m.overdue = true
		c.changed = c.changed || !c.sent
		c.begin(ForLog, m)
	case ForLog:
		c.do(Action{Kind: Say, ID: m.id, Text: m.unanswered()})
	}
	return c.take()
}

// Trying is called when a source reports what it waits for (text), or that this wait has ended
// (text is ""). Once the source has answered or failed, the call has no effect.
func (c *Core) Trying(now time.Time, id ID, text string) []Action {
	m := c.at(now, id)
	if m == nil || m.phase != Outstanding || m.trying == text {
		return nil
	}
	c.end(m, ForCalls, ForLog)
	if m.trying, m.overdue = text, false; text != "" {
		c.begin(ForCalls, m)
	}
	return c.take()
}

func (m *mechanism) unanswered() string {
	if m.trying == "" {
		return "no answer yet"
	}
	return "no answer yet: " + m.trying
}
