package join

import "time"

// Wait is why somebody waits. docs/waits.md has the table of who waits for whom.
type Wait int

// The waits.
const (
	// ForFirst: the channel waits for the first mechanism that has not failed. Nothing but the end
	// of the patience ends the timer; an answer of that mechanism makes it meaningless.
	ForFirst Wait = iota
	// ForList: what is in use waits for the list of parts that is to follow it. It ends when one
	// part has answered, and each other has answered or failed or the patience is over; and at once
	// where what is in use has never answered. A list that follows meanwhile has what is left of
	// the patience: a source that often changes its list does not keep the old endpoints in use
	// for longer. One that follows later has the whole if a source in it is new.
	ForList
	// ForWord: a source is waited for before what is kept of it is used.
	ForWord
	// ForCalls and ForLog: calls and the log wait before they say what a source waits for.
	ForCalls
	ForLog
)

const (
	// Patience is how long a mechanism that is slow holds back the others, where the channel has
	// no failover timeout of its own.
	Patience = 10 * time.Second
	// Hush is how long a source may be silent where something is kept of it. What hangs would
	// hold calls back until gRPC gives up on it, which takes 20 s.
	Hush = 2 * time.Second
	// HushOfPart is the same for a part of a list that is itself from memory: the source of the
	// list had its time. It is enough for a name to be looked up.
	HushOfPart = 200 * time.Millisecond
	// CallsSayAfter is when calls whose deadlines come say what a source waits for.
	CallsSayAfter = 200 * time.Millisecond
	// LogSaysAfter is when the log does.
	LogSaysAfter = 2 * time.Second
)

// limit returns how long a wait lasts. m is the mechanism that is waited for, nil for ForFirst.
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

// Timer says what a timer is for. ID is 0 for ForFirst.
type Timer struct {
	Wait Wait
	ID   ID
}

// waits are how far each wait for a mechanism has come.
type waits [ForLog + 1]progress

type progress int

const (
	notBegun progress = iota
	running
	over
)

// begin begins a wait. m is nil for ForFirst.
func (c *Core) begin(w Wait, m *mechanism) {
	of, id := c.of(m)
	of[w] = running
	c.do(Action{Kind: StartTimer, ID: id, Timer: Timer{w, id}, After: c.limit(w, m)})
}

// end ends waits, as far as they were begun.
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

// spoke notes that m's source has said something.
func (c *Core) spoke(m *mechanism) {
	c.end(m, ForWord, ForCalls, ForLog)
	m.trying = ""
}

// Waited says that a timer has fired, which was not stopped.
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

// Trying says what a source waits for while nothing is known, "" for nothing. It has no effect
// once the source has answered or failed.
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

// unanswered says that there is no answer, and what m's source waits for.
func (m *mechanism) unanswered() string {
	if m.trying == "" {
		return "no answer yet"
	}
	return "no answer yet: " + m.trying
}
