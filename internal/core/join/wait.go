package join

import "time"

// Wait is the reason for a wait. docs/waits.md lists all waits.
type Wait int

// These are the waits of this package.
const (
	// ForFirst: a channel without endpoints waits for the first mechanism that has not failed. The
	// timer is not stopped when that mechanism answers, but has no effect then.
	ForFirst Wait = iota
	// ForList: the endpoints in use stay in use until the new list of a source is ready, that is,
	// one of its mechanisms has answered, and each of the others has answered or failed. The wait
	// is limited by Config.Patience. If nothing in use has ever answered, there is no wait. A
	// further list that arrives during the wait does not extend it, so that a source that often
	// changes its list does not keep old endpoints in use. When the limit has been reached, a
	// further list begins another wait if one of its sources is new.
	ForList
	// ForWord: a source has some time for its first answer before its kept answer is used.
	ForWord
	// ForCalls and ForLog: the source has not answered. After some time, the errors of calls report
	// what it is waiting for. Later, the log does, too.
	ForCalls
	ForLog
)

const (
	// Patience is the default of Config.Patience, for channels that set no failover timeout.
	Patience = 10 * time.Second
	// Hush is how long a source may stay silent before its kept answer is used. A connection
	// attempt may hang for 20 s in gRPC; calls must not wait for that.
	Hush = 2 * time.Second
	// HushOfPart replaces Hush for a mechanism in a kept list: its source is started only when the
	// source of the list has used up Hush. It suffices for a DNS lookup.
	HushOfPart = 200 * time.Millisecond
	// CallsSayAfter is the time after which the errors of calls report what a source is waiting
	// for.
	CallsSayAfter = 200 * time.Millisecond
	// LogSaysAfter is the time after which the log reports what a source is waiting for.
	LogSaysAfter = 2 * time.Second
)

// limit returns how long a wait may last. m is the mechanism, or nil for ForFirst.
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

// Timer identifies a timer. ID is the mechanism's, or 0 for ForFirst.
type Timer struct {
	Wait Wait
	ID   ID
}

// waits holds how far each wait has progressed.
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

// end ends waits of m, whether they have begun or not.
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

// spoke is called when m's source has answered or failed.
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

// Trying is called when a source reports what it is waiting for, or with "" if it is not waiting.
// This has no effect after the source has answered or failed.
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

// unanswered returns "no answer yet", and what m's source is waiting for if it has reported that.
func (m *mechanism) unanswered() string {
	if m.trying == "" {
		return "no answer yet"
	}
	return "no answer yet: " + m.trying
}
