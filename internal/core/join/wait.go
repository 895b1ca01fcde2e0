package join

import "time"

// See docs/waits.md for all waits.
const (
	// Patience is the default and the minimum of Config.Patience. It has to be longer than any
	// failover timeout, or else a single slow DNS answer could make a client start out on its
	// backup.
	Patience = 10 * time.Second
	// Hush is how long we let a source be silent before we use the stored answer. Calls shouldn't
	// have to wait for a server that hangs when there's an answer they can use, so this is far
	// below gRPC's limit of 20 s for a connection attempt.
	Hush = 2 * time.Second
	// HushOfMechanism is the same for an entry of a stored list. By then, calls have already waited
	// for the source of the list, so it's short. It's still enough for a DNS lookup.
	HushOfMechanism = 200 * time.Millisecond
	// CallsSayAfter and LogSaysAfter are for a source that tells us what it's waiting for. If it
	// still has no answer after this time, we put that into the errors of calls, or into the log.
	CallsSayAfter = 200 * time.Millisecond
	LogSaysAfter  = 2 * time.Second
)

type waits struct {
	// list is for a new list that isn't ready yet. We keep the previous endpoints until one of the
	// list's mechanisms has answered and each of the rest has answered or failed. If no mechanism
	// in use has ever answered, we don't wait at all. Further lists don't extend the wait, or a
	// source that changes its list often could make us use old endpoints forever. Once the wait is
	// over, another list waits only if it has a new source in it.
	list time.Time
	// stored is how long we wait for a source's first answer before we use the stored one. For the
	// same reason as above, it doesn't start over if further lists give the name yet another
	// source.
	stored time.Time
	// calls and log start when a source without an answer reports what it's waiting for.
	calls, log time.Time
}

func (c *Core) isOver(end time.Time) bool { return !end.IsZero() && !c.now.Before(end) }

func (m *mechanism) endAnswerWaits() {
	m.waits = waits{list: m.waits.list}
	m.Trying = ""
}

// Wake returns when to call Tick next, or zero if there's no need. Any event may change it.
func (c *Core) Wake() (next time.Time) {
	for _, m := range c.byID { // there are none after Closed
		for _, end := range []time.Time{c.firstWait, m.waits.list, m.waits.stored, m.waits.calls, m.waits.log} {
			if end.After(c.lastTick) && (next.IsZero() || end.Before(next)) {
				next = end
			}
		}
	}
	return next
}

// Tick must be called at the time that Wake returned.
func (c *Core) Tick(now time.Time) []Action {
	if c.closed {
		return nil
	}
	c.now, c.lastTick = now, now
	c.changed = c.changed || !c.hasSent
	for _, m := range c.allMechanisms() {
		if c.isOver(m.waits.stored) {
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

// Trying is called when a source reports what it's waiting for, or "" if it isn't waiting anymore.
// Once the source has answered or failed, we ignore it.
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
