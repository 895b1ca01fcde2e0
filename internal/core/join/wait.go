package join

import "time"

// Wait is a reason to wait. docs/waits.md lists all waits.
type Wait int

// The waits of a Core.
const (
	// ForFirst is the wait of a channel without endpoints for the first mechanism that has not failed.
	// When this mechanism answers, the timer is not stopped, but it then has no effect.
	ForFirst Wait = iota
	// ForList is the wait until a new list is ready: one of its mechanisms has answered, and each of
	// the others has answered or failed. Until then, the previous endpoints stay in use. A list does
	// not wait if no mechanism in use has ever answered. Config.Patience limits the wait. Further
	// lists do not extend it; otherwise, a source that changes its list often would keep old endpoints
	// in use. After the limit is reached, a further list waits again only if it contains a new source.
	ForList
	// ForStored is the wait for the first answer of a source before the stored answer is used.
	ForStored
	// ForCalls and ForLog begin when a source without an answer reports what it waits for. After
	// ForCalls, the errors of calls contain the text of this report. After ForLog, the text is logged.
	ForCalls
	ForLog
)

const (
	// Patience is the usual value of Config.Patience, and the least. It is longer than a failover
	// timeout may be, because one slow DNS answer must not start a client on its backup.
	Patience = 10 * time.Second
	// Hush is the limit of ForStored. It is much shorter than gRPC's limit of 20 s for a connection
	// attempt, because calls can use the stored answer and should not wait for a server that hangs.
	Hush = 2 * time.Second
	// HushOfMechanism is the limit of ForStored for a mechanism in a stored list. It is short,
	// because calls have already waited for the source of the list (see Hush). It suffices for a DNS
	// lookup.
	HushOfMechanism = 200 * time.Millisecond
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
	case w == ForStored && m.parent != nil && m.parent.stored:
		return HushOfMechanism
	case w == ForStored:
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
	notStarted progress = iota
	running
	elapsed
)

func (c *Core) beginWait(w Wait, m *mechanism) {
	of, id := c.waitsOf(m)
	of[w] = running
	c.addAction(Action{Kind: StartTimer, ID: id, Timer: Timer{w, id}, After: c.limit(w, m)})
}

// endWaits stops the timers of the given waits of m. The waits can then begin again.
func (c *Core) endWaits(m *mechanism, list ...Wait) {
	of, id := c.waitsOf(m)
	for _, w := range list {
		if of[w] == running {
			c.addAction(Action{Kind: StopTimer, ID: id, Timer: Timer{w, id}})
		}
		of[w] = notStarted
	}
}

func (c *Core) waitsOf(m *mechanism) (*waits, ID) {
	if m == nil {
		return &c.waits, 0
	}
	return &m.waits, m.id
}

// endAnswerWaits ends the waits for m's first answer, because the source has answered or failed.
func (c *Core) endAnswerWaits(m *mechanism) {
	c.endWaits(m, ForStored, ForCalls, ForLog)
	m.trying = ""
}

// TimerFired is called when a timer fires.
func (c *Core) TimerFired(now time.Time, t Timer) []Action {
	m := c.beginEvent(now, t.ID)
	if m == nil && t.Wait != ForFirst || c.closed {
		return nil
	}
	of, _ := c.waitsOf(m)
	of[t.Wait] = elapsed
	switch t.Wait {
	case ForFirst:
		c.changed = c.changed || !c.hasSent
	case ForList:
		c.useReadyLists()
	case ForStored:
		if m.phase == Outstanding {
			c.useStored(m, "no answer within "+m.silenceLimit.String())
		}
	case ForCalls:
		c.changed = c.changed || !c.hasSent
		c.beginWait(ForLog, m)
	case ForLog:
		c.addAction(Action{Kind: Say, ID: m.id, Text: m.waitText()})
	}
	return c.takeActions()
}

// Trying is called when a source reports what it waits for. An empty text means that it no longer
// waits. After the source has answered or failed, Trying has no effect.
func (c *Core) Trying(now time.Time, id ID, text string) []Action {
	m := c.beginEvent(now, id)
	if m == nil || m.phase != Outstanding || m.trying == text {
		return nil
	}
	c.endWaits(m, ForCalls, ForLog)
	if m.trying = text; text != "" {
		c.beginWait(ForCalls, m)
	}
	return c.takeActions()
}

func (m *mechanism) waitText() string {
	if m.trying == "" {
		return "no answer yet"
	}
	return "no answer yet: " + m.trying
}
