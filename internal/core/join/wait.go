package join

import "time"

// Wait is the reason for a wait. docs/waits.md lists all waits.
type Wait int

// The reasons.
const (
	// ForFirst: the channel waits for the first mechanism that has not failed. Only the end of the
	// patience ends the timer. It has no effect if that mechanism has answered by then.
	ForFirst Wait = iota
	// ForList: the mechanisms in use wait for the list that will replace them. The wait ends when
	// one entry of the list has answered and each other one has answered or failed, or the patience
	// is over. It ends at once if nothing in use has ever answered. A further list during the wait
	// does not extend it, so that a source that often changes its list does not keep old endpoints
	// in use. A list after the wait begins a new one if one of its sources is new.
	ForList
	// ForWord: a source has some time for its first answer before its kept answer is used.
	ForWord
	// ForCalls and ForLog: the errors of calls and the log report what a source waits for after
	// some time.
	ForCalls
	ForLog
)

const (
	// Patience is the default of Config.Patience, for channels without a failover timeout of their
	// own.
	Patience = 10 * time.Second
	// Hush limits the silence of a source with a kept answer. A hanging connection attempt would
	// otherwise hold calls back for the 20 s that gRPC gives it.
	Hush = 2 * time.Second
	// HushOfPart replaces Hush for an entry of a kept list, because the source of the list has used
	// up Hush. It suffices for a DNS lookup.
	HushOfPart = 200 * time.Millisecond
	// CallsSayAfter is when errors of calls begin to report what a source waits for.
	CallsSayAfter = 200 * time.Millisecond
	// LogSaysAfter is the delay before the log reports it.
	LogSaysAfter = 2 * time.Second
)

// limit returns the duration of a wait. m is the mechanism that is waited for, nil for ForFirst.
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

// Timer identifies a timer. ID is 0 for ForFirst.
type Timer struct {
	Wait Wait
	ID   ID
}

// waits holds the progress of each wait.
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

// end ends the waits that have begun.
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

// spoke records that m's source has answered or failed.
func (c *Core) spoke(m *mechanism) {
	c.end(m, ForWord, ForCalls, ForLog)
	m.trying = ""
}

// Waited handles that a timer fired.
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

// Trying handles that a source reports what it waits for, "" for nothing. It has no effect once the
// source has answered or failed.
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

// unanswered returns a text that there is no answer, with what m's source waits for.
func (m *mechanism) unanswered() string {
	if m.trying == "" {
		return "no answer yet"
	}
	return "no answer yet: " + m.trying
}
