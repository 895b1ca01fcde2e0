// Package join decides what a channel receives from its discovery mechanisms, and when (gRFC A37).
// It is a state machine without goroutines, locks, a clock or gRPC types. Each event is a method
// that returns actions. Package internal/channel/join calls these methods, with the current time if
// they need it, and executes the actions. After each batch of events, it calls Next to get the
// message to the channel:
//
//	east answered            ->  store east's answer; Next: nothing, west has not started
//	west was started         ->  Next: send east
//	west failed              ->  log a warning about west; Next: send east, west has failed
//	east failed              ->  log a warning about east; Next: nothing, its answer stays in use
//
// Guarantees:
//
//   - Nothing is sent before all sources are started and the first mechanism that has not failed
//     has answered. Otherwise, the first calls could go to a lower priority only because a higher
//     priority is slow. wait.go limits this wait.
//   - An answer stays in use until another answer replaces it, even if sources fail in the
//     meantime.
//   - If the source of a mechanism fails or does not respond before its first answer, the mechanism
//     uses the last good answer that is stored under its name, if there is one: from before the
//     channel became idle, or from the source that had this name in the previous list.
//   - The source of a mechanism may answer with a list of mechanisms. The list replaces the
//     mechanism when a mechanism of the list has answered and the channel need not wait for the
//     others.
//   - After Closed, events have no effect.
package join

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// ID identifies a mechanism within a Core. 0 means no mechanism.
type ID int

// Mechanism is one discovery mechanism of a channel. Its source finds its endpoints.
type Mechanism struct {
	// Name is shown to users. It is unique, and empty only if the channel has a single mechanism.
	Name string
	// Source identifies the source. It must be comparable. If a mechanism of a new list has the same
	// name and the same source as a mechanism of the previous list, they are one mechanism. A nil
	// Source is equal to no other.
	Source           any
	OutlierDetection string
	Given            any
}

// Answer is what we need to know of a mechanism's answer.
type Answer struct {
	// Content contains the endpoints. Two answers are the same if their contents are equal. nil
	// means no answer.
	Content any
	// Why says why no call can succeed with this answer. It is "" if calls can.
	Why string
	// Version is the source's version of the answer. Names contains the DNS lookups from which the
	// answer was made. Both may change although Content does not.
	Version string
	Names   any
}

// Kept is the stored answer or list of a mechanism.
type Kept struct {
	Answer Answer
	List   []Mechanism
	// Confirmed is the time at which the answer or list was last known to be valid.
	Confirmed time.Time
}

// Hears describes which notifications a source accepts: requests for re-resolution (ResolveNow),
// and reports of failing endpoints (Failures).
type Hears struct {
	LookAgain bool
	Failures  bool
}

// Config is the configuration of a Core.
type Config struct {
	Patience time.Duration
	// Kept returns the stored answer or list of a mechanism, and whether one is stored. For a
	// mechanism that is in a list, it must not return a list.
	Kept func(ID) (Kept, bool)
}

// Phase is that of a mechanism until it has an answer.
type Phase int

const (
	Outstanding Phase = iota
	Failed
	Answered // an answer or a list is in use; it may be stored, or come from another source
)

func (p Phase) String() string {
	return [...]string{Outstanding: "no answer yet", Failed: "failed", Answered: "answered"}[p]
}

// Trouble is a problem of a source: a failure or a doubt (see Core.Doubted).
type Trouble struct {
	Text  string
	Since time.Time
	// Confirmed is the time at which the answer in use was last known to be valid. It is zero if no
	// answer is in use, or if the answer is still valid.
	Confirmed time.Time
}

type mechanism struct {
	Status
	parent *mechanism // the mechanism whose source sent the list that contains this one, or nil
	stored bool       // the answer or the list was stored, and the source has not answered since

	list     []*mechanism // the list in use instead of this mechanism, or nil
	nextList []*mechanism // the list that waits until it can replace list, or nil

	waits           waits
	hush            time.Duration // Hush or HushOfMechanism
	refusalReported bool          // the source was notified that the channel refused its answer
}

// Core is the state of a channel's mechanisms. Its methods are events that return the actions to
// execute, in order, except Next, Wake and Statuses, which are queries. Events of a removed mechanism
// have no effect.
type Core struct {
	config  Config
	list    []*mechanism
	byID    map[ID]*mechanism
	lastID  ID
	actions []Action
	now     time.Time

	startingCount int       // number of sources that are being started
	firstWait     time.Time // end of the wait of a channel without endpoints for the first mechanism that has not failed
	lastTick      time.Time
	hasSent       bool // an update was sent
	changed       bool // Next may have a new message
	lastRefused   bool // the channel refused the last update although its endpoints looked usable
	lastAwait     Message
	closed        bool
}

// New returns a core for the mechanisms in list, which are in priority order, and its first
// actions. The list must not be empty.
func New(now time.Time, config Config, list []Mechanism) (*Core, []Action) {
	c := &Core{config: config, byID: make(map[ID]*mechanism), now: now}
	if len(list) > 1 {
		c.firstWait = now.Add(config.Patience)
	}
	for _, m := range list {
		added := c.addMechanism(m, nil)
		c.list = append(c.list, added)
		c.startSource(added)
	}
	return c, c.takeActions()
}

func (c *Core) addMechanism(m Mechanism, parent *mechanism) *mechanism {
	c.lastID++
	added := &mechanism{Status: Status{ID: c.lastID, Mechanism: m}, parent: parent}
	c.byID[added.ID] = added
	return added
}

func (c *Core) startSource(m *mechanism) {
	c.startingCount++
	a := Action{Kind: Start, ID: m.ID, Mechanism: m.Mechanism}
	if m.parent != nil {
		a.Whole = m.parent.ID
	}
	c.addAction(a)
}

// The result is nil if the event must be ignored: the mechanism was removed, or the channel is
// closed.
func (c *Core) beginEvent(now time.Time, id ID) *mechanism {
	c.now = now
	return c.byID[id]
}

// Started is called after a source was started, or could not be started, which is also a failure.
// What the source reported during the start is passed to the core before Started is called, but the
// channel receives it only afterwards.
func (c *Core) Started(now time.Time, id ID, accepts Hears) []Action {
	c.startingCount--
	m := c.beginEvent(now, id)
	if m == nil {
		return nil
	}
	m.Hears = accepts
	if m.Phase == Outstanding && m.waits.stored.IsZero() {
		if _, isStored := c.config.Kept(id); isStored {
			if m.hush = Hush; m.parent != nil && m.parent.stored {
				m.hush = HushOfMechanism
			}
			m.waits.stored = now.Add(m.hush)
		}
	}
	return c.takeActions()
}

// Answered is called when a source has sent an answer.
func (c *Core) Answered(now time.Time, id ID, a Answer) []Action {
	m := c.beginEvent(now, id)
	if m == nil {
		return nil
	}
	if c.isRepetition(m, a) {
		m.Answer, m.stored = a, false
		c.confirm(m)
	} else {
		c.confirmAnswer(m)
		c.setAnswer(m, a)
		c.addAction(Action{Kind: Keep, ID: m.ID, Kept: Kept{Answer: a, Confirmed: c.now}})
		c.useReadyLists()
	}
	return c.takeActions()
}

// A repetition changes nothing for the channel: m uses the same answer, the channel has accepted
// it, and the source has not made calls fail since.
func (c *Core) isRepetition(m *mechanism, a Answer) bool {
	return m.Phase == Answered && !c.lastRefused && !m.hasList() &&
		m.Answer.Content == a.Content && !m.makesCallsFail()
}

func (c *Core) setAnswer(m *mechanism, a Answer) {
	m.endAnswerWaits()
	m.Phase, m.Answer, m.stored = Answered, a, false
	before := m.listed()
	m.list, m.nextList, m.waits.list = nil, nil, time.Time{}
	c.removeUnlisted(m, before)
	c.markChanged(m)
}

// Failed is called when a source has failed: it has no answer, or cannot confirm its last one.
func (c *Core) Failed(now time.Time, id ID, reason string) []Action {
	if m := c.beginEvent(now, id); m != nil {
		c.fail(m, reason)
	}
	return c.takeActions()
}

func (c *Core) fail(m *mechanism, reason string) {
	switch {
	case m.Phase == Answered:
		c.keepConfirmed(m)
		if c.recordFailure(m, reason, m.consequence()) && m.Answer.Why != "" {
			c.markChanged(m)
		}
	case c.useStored(m, reason):
		return
	default:
		if c.recordFailure(m, reason, "") {
			c.markChanged(m)
		}
		m.endAnswerWaits()
		m.Phase = Failed
	}
	c.useReadyLists()
}

// A source that fails before its first answer leaves us what is stored, if anything is.
func (c *Core) useStored(m *mechanism, reason string) bool {
	k, isStored := c.config.Kept(m.ID)
	if !isStored {
		return false
	}
	m.recordError(reason, c.now)
	m.Failure = Trouble{reason, c.now, k.Confirmed}
	age := c.now.Sub(k.Confirmed).Round(time.Second)
	c.addAction(Action{Kind: Warn, ID: m.ID, Text: reason + "; the endpoints that were confirmed " + age.String() + " ago are used"})
	if k.List != nil {
		c.setList(m, k.List)
	} else {
		c.setAnswer(m, k.Answer)
		c.useReadyLists()
	}
	m.stored = true
	return true
}

// Confirmed is called when a source reports that its last answer is still valid.
func (c *Core) Confirmed(now time.Time, id ID) []Action {
	m := c.beginEvent(now, id)
	if m == nil || m.Phase != Answered || m.stored {
		return nil
	}
	c.confirm(m)
	return c.takeActions()
}

func (c *Core) confirm(m *mechanism) {
	c.confirmAnswer(m)
	c.addAction(Action{Kind: Confirm, ID: m.ID, Kept: Kept{Answer: m.Answer, Confirmed: c.now}})
}

// We do this before the source fails, stops or is replaced. It would have told us of a change, so
// the answer was valid until now, unless the source is in doubt.
func (c *Core) keepConfirmed(m *mechanism) {
	if m.Phase == Answered && !m.stored && m.Failure.Text == "" {
		c.addAction(Action{Kind: Confirm, ID: m.ID, Kept: Kept{Answer: m.Answer, Confirmed: c.validUntil(m)}})
	}
}

// Doubted is called when a source no longer knows whether its last answer is valid, for example
// after it has lost its connection to the server. reason is empty when it knows again. confirmed is
// the time at which the answer was last known to be valid, or zero if Confirmed is called for this
// source instead. Unlike a failure, a doubt does not affect calls.
func (c *Core) Doubted(now time.Time, id ID, reason string, confirmed time.Time) []Action {
	m := c.beginEvent(now, id)
	switch {
	case m == nil:
	case reason == "":
		c.endTrouble(m, &m.Doubt)
	default:
		m.recordError(reason, now)
		if m.Doubt.Text != reason {
			text := reason
			if !confirmed.IsZero() {
				text += staysInUse
			}
			c.addAction(Action{Kind: Show, ID: id, Text: text})
		}
		m.Doubt = Trouble{reason, cmp.Or(confirmed, m.Doubt.Since, now), confirmed}
	}
	return c.takeActions()
}

// Rejected is called when a source has rejected an invalid update from its server. The last answer
// of the source remains valid.
func (c *Core) Rejected(now time.Time, id ID, reason string) {
	if m := c.beginEvent(now, id); m != nil {
		m.recordError(reason, now)
	}
}

// ResolveNow is called when the channel requests a re-resolution without naming a mechanism. With
// several mechanisms, we ignore it: a failing endpoint of one (for example from a management
// server) would continually cause DNS lookups of another. gRFC A37 has ignore_reresolution_requests
// for the same reason.
func (c *Core) ResolveNow() []Action {
	if list := c.inUse(); len(list) == 1 {
		return c.EndpointsFail(list[0].ID, false)
	}
	return nil
}

// EndpointsFail is called when endpoints of a mechanism fail. It requests a re-resolution from the
// mechanism's source unless ignored is set. It also reports the failure to the source, if the
// source accepts such reports.
func (c *Core) EndpointsFail(id ID, ignored bool) []Action {
	if m := c.byID[id]; m != nil {
		if !ignored {
			c.requestResolution(m)
		}
		if m.Failures {
			c.addAction(Action{Kind: TellFailing, ID: id})
		}
	}
	return c.takeActions()
}

func (c *Core) requestResolution(m *mechanism) {
	if m.LookAgain {
		c.addAction(Action{Kind: RequestResolution, ID: m.ID})
	}
}

func (c *Core) Closed(now time.Time) []Action {
	if c.closed {
		return nil
	}
	c.now, c.closed = now, true
	all := c.allMechanisms()
	for _, m := range all {
		c.keepConfirmed(m)
	}
	for _, m := range all {
		c.stopSource(m)
	}
	return c.takeActions()
}

func (c *Core) stopSource(m *mechanism) {
	c.addAction(Action{Kind: Stop, ID: m.ID})
	delete(c.byID, m.ID)
}

// A list takes the place of the mechanism that it has replaced.
func (c *Core) inUse() []*mechanism {
	var list []*mechanism
	for _, m := range c.list {
		if m.list == nil {
			list = append(list, m)
		} else {
			list = append(list, m.list...)
		}
	}
	return list
}

// These include mechanisms that a list has replaced, and those in lists that are not in use yet.
func (c *Core) allMechanisms() []*mechanism {
	return slices.SortedFunc(maps.Values(c.byID), func(a, b *mechanism) int { return int(a.ID - b.ID) })
}

func (c *Core) markChanged(m *mechanism) {
	c.changed = c.changed || slices.Contains(c.inUse(), m)
}

func (m *mechanism) hasList() bool { return m.list != nil || m.nextList != nil }
