// Package join decides what a channel receives from its discovery mechanisms, and when (gRFC A37).
// It is a state machine without goroutines, locks, a clock or gRPC types. Package internal/join
// passes events to it, with the current time where it matters, and executes the actions that they
// return. After each batch of events, it asks Next for the message to the channel:
//
//	east answered            ->  keep east's answer; Next: nothing, west has not started
//	west was started         ->  Next: send east
//	west failed              ->  warn of west; Next: send east, west has failed
//	east failed              ->  warn of east, whose last answer stays in use; Next: nothing
//
// Guarantees:
//
//   - Nothing is sent before all sources are started and the first mechanism that has not failed
//     has answered. Otherwise, the first calls could go to a lower priority just because a higher
//     one is slow. wait.go limits this wait.
//   - An answer stays in use until another answer replaces it, even if sources fail in the
//     meantime.
//   - A mechanism whose source fails or stays silent before its first answer uses the answer that
//     was kept while the channel was idle, if there is one.
//   - A mechanism may answer with a list of mechanisms. The list replaces it once one mechanism of
//     the list has answered and the channel need not wait for the others.
//   - After Closed, events only complete the start of sources.
package join

import (
	"slices"
	"time"
)

// ID identifies a mechanism within a Core. 0 means no mechanism.
type ID int

// Mechanism is one discovery mechanism of a channel. Its source finds its endpoints.
type Mechanism struct {
	// Name is shown to users. It is unique, and empty only if the channel has a single mechanism.
	Name string
	// Source identifies the source. It must be comparable. A mechanism of a new list continues the
	// one in the previous list that has the same name and the same source. nil never matches.
	Source           any
	OutlierDetection string
	Given            any
}

// Answer is the part of a mechanism's answer that this package needs.
type Answer struct {
	// Content holds the endpoints. Two answers are the same if their contents are equal. nil means
	// that there is no answer.
	Content any
	// Why is the reason why no call can succeed with this answer, or "" if calls can succeed.
	Why string
	// Version is the source's version of the answer. Names holds the DNS lookups that the answer was
	// made from. Both may change although the content does not.
	Version string
	Names   any
}

// Kept is the answer or the list of a mechanism that was stored when the channel became idle.
type Kept struct {
	Answer Answer
	Parts  []Mechanism
	// Confirmed is the time at which the answer or list was last known to be valid.
	Confirmed time.Time
}

// Hears describes which notifications a source accepts: requests for re-resolution, and reports of
// failing endpoints.
type Hears struct {
	LookAgain bool
	Failures  bool
}

// Config is the configuration of a Core.
type Config struct {
	Patience time.Duration
	// Kept returns the stored answer or list of a mechanism, if there is one. For a mechanism that is
	// itself in a list, it must not return a list.
	Kept func(ID) (Kept, bool)
}

// Phase says how far a mechanism is on the way to its first answer.
type Phase int

// The phases of a mechanism.
const (
	Outstanding Phase = iota
	Failed
	Answered // an answer or a list is in use, perhaps a stored one or one that another source sent
)

func (p Phase) String() string {
	return [...]string{Outstanding: "no answer yet", Failed: "failed", Answered: "answered"}[p]
}

type origin int

const (
	own         origin = iota
	memory             // this mechanism's own source, before the channel became idle
	predecessor        // the source of the mechanism that had this name in the previous list
)

// Trouble is a problem of a source: a failure or a doubt (see Core.Doubted).
type Trouble struct {
	Text  string
	Since time.Time
	// Confirmed is when the answer in use was last known to be valid. It is zero if there is no
	// answer, or if the answer is still valid.
	Confirmed time.Time
}

type mechanism struct {
	Mechanism
	id    ID
	whole *mechanism // the mechanism whose source sent the list that contains this one, or nil
	begun bool
	gone  bool
	hears Hears

	phase  Phase
	answer Answer // empty before the first answer and while a list is in use
	from   origin
	until  time.Time // if from is predecessor, the time at which the inherited answer was last known to be valid
	number int       // sequence number of the last answer, its own or inherited, or 0
	err    string

	parts  []*mechanism
	next   []*mechanism
	listed bool

	complaint Trouble // the last failure; empty after the next answer
	lost      Trouble // why the source cannot confirm its answer at present
	heard     time.Time
	lastError string
	failedAt  time.Time

	waits   waits
	hush    time.Duration
	trying  string
	overdue bool // the errors of calls already say what the mechanism is trying
	told    bool // the source knows that the channel refused its answer
}

// Core is the state of a channel's mechanisms. Its methods are events that return the actions to
// execute, in order, except Next, Look and Said, which are queries. Events of a removed mechanism
// have no effect.
type Core struct {
	config  Config
	list    []*mechanism
	byID    map[ID]*mechanism
	last    ID
	actions []Action
	now     time.Time

	answers  int
	starting int
	waits    waits
	sent     bool
	changed  bool
	refused  bool
	awaiting string
	closed   bool
}

// New returns a core for at least one mechanism, in priority order, and its first actions.
func New(config Config, list []Mechanism) (*Core, []Action) {
	c := &Core{config: config, byID: make(map[ID]*mechanism)}
	for _, m := range list {
		c.list = append(c.list, c.add(m, nil))
	}
	if len(list) > 1 {
		c.begin(ForFirst, nil)
	}
	for _, m := range c.list {
		c.start(m, nil)
	}
	return c, c.take()
}

func (c *Core) add(m Mechanism, whole *mechanism) *mechanism {
	c.last++
	added := &mechanism{Mechanism: m, id: c.last, whole: whole}
	c.byID[added.id] = added
	return added
}

func (c *Core) start(m *mechanism, heir *mechanism) {
	c.starting++
	a := Action{Kind: Start, ID: m.id, Mechanism: m.Mechanism, Answer: m.answer, Inherited: m.phase == Answered}
	if m.whole != nil {
		a.Whole = m.whole.id
	}
	if heir != nil {
		a.Heir = heir.id
	}
	if m.holds() {
		a.At = c.now
	}
	c.do(a)
}

// at begins an event of a mechanism: it sets the core's time to now. It returns the mechanism, or
// nil if the event must be ignored because the mechanism or the core is gone.
func (c *Core) at(now time.Time, id ID) *mechanism {
	c.now = now
	if m := c.byID[id]; m != nil && !m.gone && !c.closed {
		return m
	}
	return nil
}

// Started is called after a source was started, and after the answers that it sent during the
// start. The channel is notified of them only now.
func (c *Core) Started(now time.Time, id ID, hears Hears) []Action {
	m := c.byID[id]
	c.starting--
	m.begun, m.hears = true, hears
	if c.at(now, id) == nil {
		c.stop(m)
		return c.take()
	}
	if m.phase == Outstanding {
		if _, some := c.config.Kept(id); some {
			m.hush = c.limit(ForWord, m)
			c.begin(ForWord, m)
		}
	}
	return c.take()
}

// NotStarted is called when a source could not be started.
func (c *Core) NotStarted(now time.Time, id ID, why string) []Action {
	m := c.byID[id]
	if c.at(now, id) != nil {
		c.fail(m, why)
	}
	c.starting--
	m.begun = true
	if m.gone || c.closed {
		c.stop(m)
	}
	return c.take()
}

// Answered is called when a source has sent an answer.
func (c *Core) Answered(now time.Time, id ID, a Answer) []Action {
	m := c.at(now, id)
	if m == nil {
		return nil
	}
	c.answers++
	m.number = c.answers
	if c.repeats(m, a) {
		m.answer, m.from = a, own
		c.confirm(m)
		return c.take()
	}
	c.use(m, a)
	c.do(Action{Kind: Accept, ID: id, Answer: a})
	return c.take()
}

// Said returns the answer that a mechanism uses, and whether there is one. It is empty for a
// mechanism that has been replaced by a list of mechanisms.
func (c *Core) Said(id ID) (Answer, bool) {
	m := c.byID[id]
	if m == nil || m.phase != Answered {
		return Answer{}, false
	}
	return m.answer, true
}

// repeats reports whether answer a of m's source changes nothing. This is the case if m already
// uses the same answer, the channel accepted it, and no call has failed because of the source
// since.
func (c *Core) repeats(m *mechanism, a Answer) bool {
	return m.phase == Answered && m.from != predecessor && !c.refused && len(m.all()) == 0 &&
		m.answer.Content == a.Content && !m.failsStill()
}

func (c *Core) use(m *mechanism, a Answer) {
	c.well(m)
	c.put(m, a, own)
	c.do(Action{Kind: Keep, ID: m.id, Answer: a, At: c.now})
	c.touch(m)
	c.turn()
}

func (c *Core) put(m *mechanism, a Answer, from origin) {
	c.spoke(m)
	m.phase, m.answer, m.from, m.err, m.listed = Answered, a, from, "", false
	before := m.all()
	c.end(m, ForList)
	m.parts, m.next = nil, nil
	c.drop(m, before)
}

// Failed is called when a source has failed: it has no answer, or cannot confirm its last one.
func (c *Core) Failed(now time.Time, id ID, why string) []Action {
	if m := c.at(now, id); m != nil {
		c.fail(m, why)
	}
	return c.take()
}

func (c *Core) fail(m *mechanism, why string) {
	switch {
	case m.phase == Answered:
		if m.holds() && m.from == own {
			// The source would have reported a change before this failure, so its answer was valid until
			// now, even if the source only polls.
			c.do(Action{Kind: Confirm, ID: m.id, At: c.now})
		}
		if c.complain(m, why, m.consequence()) && m.answer.Why != "" {
			c.touch(m)
		}
		if m.from == predecessor {
			m.from = own
		}
	case c.recall(m, why):
		return
	default:
		if c.complain(m, why, "") {
			c.touch(m)
		}
		c.spoke(m)
		m.phase, m.err, m.from = Failed, why, own
	}
	c.turn()
}

// recall puts the stored answer or list of m into use, because its source has failed before its
// first answer. It reports whether something was stored.
func (c *Core) recall(m *mechanism, why string) bool {
	k, some := c.config.Kept(m.id)
	if !some {
		return false
	}
	m.wrong(why, c.now)
	m.complaint = Trouble{why, c.now, k.Confirmed}
	age := c.now.Sub(k.Confirmed).Round(time.Second)
	c.do(Action{Kind: Warn, ID: m.id, Text: why + "; the endpoints that were confirmed " + age.String() + " ago are used"})
	if k.Parts != nil {
		c.split(m, k.Parts)
		m.from = memory
		return true
	}
	c.put(m, k.Answer, memory)
	c.touch(m)
	c.turn()
	return true
}

// Confirmed is called when a source reports that its last answer is still valid.
func (c *Core) Confirmed(now time.Time, id ID) []Action {
	m := c.at(now, id)
	if m == nil || m.phase != Answered || m.from != own {
		return nil
	}
	c.confirm(m)
	return c.take()
}

func (c *Core) confirm(m *mechanism) {
	c.well(m)
	c.do(Action{Kind: Confirm, ID: m.id, Answer: m.said(), At: c.now})
}

// said returns the last answer of m's source. It is empty if the source answered with a list.
func (m *mechanism) said() Answer {
	if m.listed {
		return Answer{}
	}
	return m.answer
}

// Doubted is called when a source can no longer tell whether its last answer is still valid, for
// example because it lost its connection to the server. why is empty when the source can tell
// again. confirmed is the time at which the answer was last known to be valid. It is zero if this
// source confirms its answer by calls of Confirmed instead. Unlike a failure, a doubt does not
// affect calls.
func (c *Core) Doubted(now time.Time, id ID, why string, confirmed time.Time) []Action {
	m := c.at(now, id)
	switch {
	case m == nil:
	case why == "":
		c.over(m, &m.lost)
	default:
		m.wrong(why, now)
		if m.lost.Text != why {
			consequence := ""
			if !confirmed.IsZero() {
				consequence = staysInUse
			}
			c.do(Action{Kind: Show, ID: id, Text: why + consequence})
		}
		since := m.lost.Since
		if m.lost.Text == "" || !m.lost.Confirmed.Equal(confirmed) {
			if since = confirmed; since.IsZero() {
				since = now
			}
		}
		m.lost = Trouble{why, since, confirmed}
	}
	return c.take()
}

// Rejected is called when a source has refused an invalid update from its server. The last answer
// stays valid.
func (c *Core) Rejected(now time.Time, id ID, why string) {
	if m := c.at(now, id); m != nil {
		m.wrong(why, now)
	}
}

// LookAgain is called when the channel requests a re-resolution without naming a mechanism. If
// there are several mechanisms, the request is ignored. Otherwise, an endpoint of one mechanism
// (from a management server, for example) would cause DNS lookups of another for as long as it
// fails. gRFC A37 has ignore_reresolution_requests for the same reason.
func (c *Core) LookAgain() []Action {
	if list := c.inUse(); len(list) == 1 {
		return c.EndpointsFail(list[0].id, false)
	}
	return nil
}

// EndpointsFail is called when endpoints of a mechanism fail. It requests a re-resolution from the
// source unless ignored is set, and reports the failure to sources that accept such reports.
func (c *Core) EndpointsFail(id ID, ignored bool) []Action {
	if m := c.byID[id]; m != nil && !m.gone && !c.closed {
		if !ignored {
			c.ask(m)
		}
		if m.hears.Failures {
			c.do(Action{Kind: TellFailing, ID: id})
		}
	}
	return c.take()
}

func (c *Core) ask(m *mechanism) {
	if m.hears.LookAgain {
		c.do(Action{Kind: AskAgain, ID: m.id})
	}
}

// Closed is called when the channel is closed.
func (c *Core) Closed(now time.Time) []Action {
	if c.closed {
		return nil
	}
	c.now, c.closed = now, true
	c.end(nil, ForFirst)
	all := c.all()
	for _, m := range all {
		c.end(m, ForList, ForWord, ForCalls, ForLog)
		if m.begun && m.holds() && m.from == own {
			c.do(Action{Kind: ConfirmLast, ID: m.id, Answer: m.said()})
		}
	}
	for _, m := range all {
		if m.begun { // Started or NotStarted stops a source that is still starting
			c.stop(m)
		}
	}
	return c.take()
}

func (c *Core) stop(m *mechanism) {
	c.do(Action{Kind: Stop, ID: m.id})
	delete(c.byID, m.id)
}

// inUse returns the mechanisms in use, in priority order. A mechanism that answered with a list is
// replaced by the list.
func (c *Core) inUse() []*mechanism {
	var list []*mechanism
	for _, m := range c.list {
		if m.parts == nil {
			list = append(list, m)
		} else {
			list = append(list, m.parts...)
		}
	}
	return list
}

// all returns all mechanisms, including those that answered with a list and those in lists that are
// not in use yet.
func (c *Core) all() []*mechanism {
	var list []*mechanism
	for _, m := range c.list {
		list = append(append(list, m), m.all()...)
	}
	return list
}

func (c *Core) touch(m *mechanism) {
	c.changed = c.changed || slices.Contains(c.inUse(), m)
}

func (m *mechanism) holds() bool { return m.phase == Answered && m.complaint.Text == "" }
