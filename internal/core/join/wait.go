package join

import "time"

// docs/waits.md lists all waits.
const (
	// Patience is the usual value of Config.Patience, and the least. It is longer than a failover
	// timeout may be: one slow DNS answer must not start a client on its backup.
	Patience = 10 * time.Second
	// Hush is how long a source may be silent before we use the stored answer of its mechanism. It
	// is much shorter than gRPC's limit of 20 s for a connection attempt, since calls can use the
	// stored answer and should not wait for a server that hangs.
	Hush = 2 * time.Second
	// HushOfMechanism is the same for a mechanism in a stored list. It is short, as calls have
	// already waited for the source of the list, but long enough for a DNS lookup.
	HushOfMechanism = 200 * time.Millisecond
	// CallsSayAfter and LogSaysAfter are how long a source without an answer waits for something
	// before the errors of calls and the log say so.
	CallsSayAfter = 200 * time.Millisecond
	LogSaysAfter  = 2 * time.Second
)

// The times at which the waits of a mechanism end, or zero for a wait that has not begun.
type waits struct {
	// list is the wait until the next list is ready: one of its mechanisms has answered, and each
	// of the others has answered or failed. Until then, we keep the previous endpoints. A list does
	// not wait if no mechanism in use has ever answered. Further lists do not extend the wait;
	// otherwise, a source that changes its list often would keep old endpoints in use. After its
	// end, a further list waits again only if it contains a new source.
	list time.Time
	// stored is the wait for the first answer of a source before we use the stored one. It
	// continues if further lists give the name yet another source, for the same reason.
	stored time.Time
	// calls and log begin when a source without an answer reports what it waits for.
	calls, log time.Time
}

func (c *Core) isOver(end time.Time) bool { return !end.IsZero() && !c.now.Before(end) }

func (m *mechanism) endAnswerWaits() {
	m.waits = waits{list: m.waits.list}
	m.Trying = ""
}

// Wake returns the time at which Tick must be called, or zero. Each event may change it.
func (c *Core) Wake() (next time.Time) {
	for _, m := range c.byID { // empty after Closed
		for _, end := range []time.Time{c.firstWait, m.waits.list, m.waits.stored, m.waits.calls, m.waits.log} {
			if end.After(c.lastTick) && (next.IsZero() || end.Before(next)) {
				next = end
			}
		}
	}
	return next
}

// Tick is called at the time that Wake has returned.
func (c *Core) Tick(now time.Time) []Action {
	if c.closed {
		return nil
	}
	c.now, c.lastTick = now, now
	c.changed = c.changed || !c.hasSent
	for _, m := range c.allMechanisms() {
		if c.isOver(m.waits.stored) {
			m.waits.stored = time.Time{}
			c.useStored(m, "no answer within "+m.hush.String())
		}
		if c.isOver(m.waits.log) {
			m.waits.log = time.Time{}
			c.addAction(Action{Kind: Say, ID: m.ID, Text: m.waitText()})
		}
	}
	c.useReadyLists()
	return c.takeActions()
}

// Trying is called when a source reports what it waits for. An empty text means that it no longer
// waits. After the source has answered or failed, Trying has no effect.
func (c *Core) Trying(now time.Time, id ID, text string) []Action {
	m := c.beginEvent(now, id)
	if m == nil || m.Phase != Outstanding || m.Trying == text {
		return nil
	}
	m.Trying, m.waits.calls, m.waits.log = text, time.Time{}, time.Time{}
	if text != "" {
		m.waits.calls, m.waits.log = now.Add(CallsSayAfter), now.Add(LogSaysAfter)
	}
	return nil
}

func (m *mechanism) waitText() string {
	if m.Trying == "" {
		return "no answer yet"
	}
	return "no answer yet: " + m.Trying
}
