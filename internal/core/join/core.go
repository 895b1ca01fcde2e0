// Package join decides what a channel gets from its discovery mechanisms, and when (gRFC A37). It's
// a state machine without goroutines, locks, a clock or gRPC types. Each event is a method that
// returns actions, and takes the current time if it needs it. Package internal/channel/join calls
// these methods and executes the actions. After each batch of events, it calls Next to see what to
// send:
//
//	east answered            ->  store east's answer; Next: nothing, west has not started
//	west was started         ->  Next: send east
//	west failed              ->  log a warning about west; Next: send east, west has failed
//	east failed              ->  log a warning about east; Next: nothing, its answer stays in use
//
// We guarantee the following:
//
//   - We don't send anything until all sources are started and the first mechanism that hasn't failed
//     has answered. Otherwise the first calls might go to a lower priority just because a higher one is
//     slow. wait.go puts a limit on this wait.
//   - An answer stays in use until there's a newer one, even if sources fail in the meantime.
//   - If a source fails or stays silent before its first answer, we use the last good answer that's
//     stored under the mechanism's name, if any. It's from before the channel became idle, or from the
//     source that had this name in the previous list.
//   - A source may answer with a list of mechanisms instead of endpoints. The list replaces the mechanism
//     once one of its entries has answered and the channel doesn't have to wait for the rest.
//   - After Closed, events are ignored.
package join

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

type ID int

type Mechanism struct {
	// Name is shown to users. It's unique, and can only be empty if there is just one mechanism.
	Name string
	// Source identifies the source, and must be comparable. If an entry of a new list has the same
	// name and source as one of the previous list, we treat them as the same mechanism and keep its
	// state. A nil Source never equals another.
	Source           any
	Prefer           string
	OutlierDetection string
	Given            any
}

type Answer struct {
	// Content holds the endpoints. We compare it to find out if an answer is new. nil means no
	// answer.
	Content any
	// Why is the reason that no call can succeed with this answer, or "" if calls can.
	Why string
	// Version is what the source calls this version of its answer. Names lists the DNS lookups that
	// went into it. Either can change while Content stays the same.
	Version string
	Names   any
}

type Kept struct {
	Answer    Answer
	List      []Mechanism
	Confirmed time.Time
}

// Hears says which notifications a source wants: requests for a re-resolution, and reports of failing
// endpoints.
type Hears struct {
	ResolveNow      bool
	EndpointsFailed bool
}

type Config struct {
	Patience time.Duration
	// Kept looks up the stored answer or list of a mechanism. For a mechanism that's part of a
	// list, it must not return another list.
	Kept func(ID) (Kept, bool)
}

type Phase int

const (
	Outstanding Phase = iota
	Failed
	Answered // we use an answer or a list, possibly a stored one or one from another source
)

func (p Phase) String() string {
	return [...]string{Outstanding: "no answer yet", Failed: "failed", Answered: "answered"}[p]
}

type Trouble struct {
	Text  string
	Since time.Time
	// Confirmed is when we last knew the answer in use to be valid. It's zero if there's no such
	// answer, or if it's still valid now.
	Confirmed time.Time
}

type mechanism struct {
	Status
	parent *mechanism // the mechanism whose list this one is in, or nil
	stored bool       // we use what was stored, as the source hasn't answered since

	list     []*mechanism // in use instead of this mechanism, or nil
	nextList []*mechanism // will replace list when it's ready, or nil

	waits           waits
	hush            time.Duration
	refusalReported bool // the source knows that the channel refused its answer
}

// Core holds the state of a channel's mechanisms. Its methods are events and return actions to
// execute in order, except for the queries Next, Wake and Statuses. Events for a mechanism that has
// been removed are ignored.
type Core struct {
	config  Config
	list    []*mechanism
	byID    map[ID]*mechanism
	lastID  ID
	actions []Action
	now     time.Time

	startingCount int
	firstWait     time.Time // if we have no endpoints, we wait until then for the first mechanism that hasn't failed
	lastTick      time.Time
	hasSent       bool
	changed       bool // there may be something for Next to send
	lastRefused   bool // the channel refused our last update although the endpoints looked fine
	lastAwait     Message
	closed        bool
}

// New returns a core and its first actions. The mechanisms in list are in order of priority, and
// there must be at least one.
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
		a.Parent = m.parent.ID
	}
	c.addAction(a)
}

// beginEvent returns nil if the caller should ignore the event because the mechanism is gone or the
// channel is closed.
func (c *Core) beginEvent(now time.Time, id ID) *mechanism {
	c.now = now
	return c.byID[id]
}

// Started is called once a source has started or failed to start. What it reported in the meantime
// has already been passed in, but we don't send any of it to the channel until now.
func (c *Core) Started(now time.Time, id ID, hears Hears) []Action {
	c.startingCount--
	m := c.beginEvent(now, id)
	if m == nil {
		return nil
	}
	m.Hears = hears
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
		c.addAction(Action{Kind: Keep, ID: m.ID, Kept: Kept{Answer: a, Confirmed: c.now}, Current: true})
		c.useReadyLists()
	}
	return c.takeActions()
}

// isRepetition returns true if an answer doesn't change anything for the channel. That's the case
// if m already uses the same answer, the channel has accepted it, and the source hasn't made calls
// fail since.
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

// Failed is called when a source either has no answer, or can't confirm the last one.
func (c *Core) Failed(now time.Time, id ID, reason string) []Action {
	if m := c.beginEvent(now, id); m != nil {
		c.fail(m, reason)
	}
	return c.takeActions()
}

func (c *Core) fail(m *mechanism, reason string) {
	switch {
	case m.Phase == Answered:
		c.keepConfirmed(m, false)
		if c.recordFailure(m, reason, m.consequence()) && m.Answer.Why != "" {
			c.markChanged(m)
		}
	case c.useStored(m, reason):
	default:
		if c.recordFailure(m, reason, "") {
			c.markChanged(m)
		}
		m.endAnswerWaits()
		m.Phase = Failed
	}
	c.useReadyLists()
}

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
	}
	m.stored = true
	return true
}

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
	c.addAction(Action{Kind: Confirm, ID: m.ID, Kept: Kept{Answer: m.Answer, Confirmed: c.now}, Current: true})
}

// keepConfirmed is called before a source fails, stops or is replaced, and once it's in doubt. Without
// a doubt, the answer was valid until now, because we would have heard of any change. goesOn is set
// if we still would.
func (c *Core) keepConfirmed(m *mechanism, goesOn bool) {
	if m.Phase == Answered && !m.stored && m.Failure.Text == "" {
		c.addAction(Action{Kind: Confirm, ID: m.ID, Kept: Kept{Answer: m.Answer, Confirmed: c.validUntil(m)}, Current: goesOn && m.Doubt.Text == ""})
	}
}

// Doubted is called when a source can't tell anymore whether its last answer is still valid, e.g.
// because it lost the connection to its server. An empty reason means that the doubt is over.
// confirmed is when the answer was last known to be valid, or zero if this source calls Confirmed
// for that. Unlike a failure, a doubt doesn't affect calls.
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
		c.keepConfirmed(m, false)
	}
	return c.takeActions()
}

// Rejected is called when a source has rejected an invalid update from its server. Its last answer
// remains valid.
func (c *Core) Rejected(now time.Time, id ID, reason string) {
	if m := c.beginEvent(now, id); m != nil {
		m.recordError(reason, now)
	}
}

// ResolveNow is called when the channel wants a re-resolution but doesn't say from which mechanism.
// If there are several, we ignore it. Otherwise a failing endpoint of one mechanism, e.g. one that
// came from a management server, would keep causing DNS lookups for another. gRFC A37 has
// ignore_reresolution_requests for the same reason.
func (c *Core) ResolveNow() []Action {
	if list := c.inUse(); len(list) == 1 {
		return c.ResolveNowFor(list[0].ID, false)
	}
	return nil
}

// ResolveNowFor is called when endpoints of a mechanism fail. We ask its source for a re-resolution
// unless ignored is set. If the source wants to hear about failures, we tell it either way.
func (c *Core) ResolveNowFor(id ID, ignored bool) []Action {
	if m := c.byID[id]; m != nil {
		if !ignored {
			c.callResolveNow(m)
		}
		if m.EndpointsFailed {
			c.addAction(Action{Kind: CallEndpointsFailed, ID: id})
		}
	}
	return c.takeActions()
}

func (c *Core) callResolveNow(m *mechanism) {
	if m.ResolveNow {
		c.addAction(Action{Kind: CallResolveNow, ID: m.ID})
	}
}

func (c *Core) Closed(now time.Time) []Action {
	if c.closed {
		return nil
	}
	c.now, c.closed = now, true
	all := c.allMechanisms()
	for _, m := range all {
		c.keepConfirmed(m, false)
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

// allMechanisms, unlike inUse, includes mechanisms that were replaced by a list, and entries of
// lists that we don't use yet.
func (c *Core) allMechanisms() []*mechanism {
	return slices.SortedFunc(maps.Values(c.byID), func(a, b *mechanism) int { return cmp.Compare(a.ID, b.ID) })
}

func (c *Core) markChanged(m *mechanism) {
	c.changed = c.changed || slices.Contains(c.inUse(), m)
}

func (m *mechanism) hasList() bool { return m.list != nil || m.nextList != nil }
