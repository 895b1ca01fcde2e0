package join

import "time"

// Wait is the reason for a wait. docs/waits.md lists all waits.
type Wait int

// These are the reasons.
const (
	// ForFirst: the channel waits for the first mechanism that has not failed. The timer is not
	// stopped when that mechanism answers, but it then has no effect.
	ForFirst Wait = iota
	// ForList: the mechanisms in use wait for the list that will replace them. The wait ends when
	// one entry of the list has answered and each of the others has answered or failed, or when the
	// patience is over. If nothing in use has ever answered, the wait ends immediately. A further
	// list during the wait does not extend it, so that a source that often changes its list does
	// not keep old endpoints in use. A list that arrives after the wait begins a new wait if one of
	// the list's sources is new.
	ForList
	// ForWord: a source has some time to give its first answer before its kept answer is used.
	ForWord
	// ForCalls and ForLog: after some time, the errors of calls and then the log report what a
	// source is waiting for.
	ForCalls
	ForLog
)

const (
	// Patience is the default of Config.Patience. It applies to channels without a failover timeout
	// of their own.
	Patience = 10 * time.Second
	// Hush is how long a source with a kept answer may stay silent. A hanging connection attempt
	// would otherwise hold calls back for the 20 s that gRPC allows it.
	Hush = 2 * time.Second
	// HushOfPart replaces Hush for an entry of a kept list, because the source of the list has
	// already used up Hush. It is long enough for a DNS lookup.
	HushOfPart = 200 * time.Millisecond
	// CallsSayAfter is the time after which errors of calls begin to report what a source is
	// waiting for.
	CallsSayAfter = 200 * time.Millisecond
	// LogSaysAfter is the time after which the log reports what a source is waiting for.
	LogSaysAfter = 2 * time.Second
)

// limit returns the duration of a wait. m is the mechanism that is waited for, or nil for ForFirst.
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

// Waited handles the firing of a timer.
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

// Trying handles a source's report of what it is waiting for; "" means that it is not waiting. The
// report has no effect once the source has answered or failed.
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

// unanswered returns a text that says that there is no answer, and what m's source is waiting for.
func (m *mechanism) unanswered() string {
	if m.trying == "" {
		return "no answer yet"
	}
	return "no answer yet: " + m.trying
}
