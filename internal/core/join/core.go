// Package join decides what a channel learns of its discovery mechanisms (gRFC A37), and
// when. It is a state machine: no goroutines, no locks, no clock, no gRPC types. Events go
// in, with the time at which they happen, and the actions that they call for come out.
// What to tell the channel is read from Next once no event is left:
//
//	east answered            ->  keep east's answer; Next: nothing, west has not started
//	west was started         ->  Next: send east
//	west failed              ->  warn of west; Next: send east, west has failed
//	east failed              ->  warn of east, whose last answer stays in use; Next: nothing
//
// These are the guarantees:
//
//   - Nothing is sent before all sources are started, and before the first mechanism that
//     has not failed has answered. So the first calls do not go to a lower priority because a
//     higher one is slow. It is waited for, but not longer than the rules in wait.go say.
//   - An answer stays in use until another takes its place, whatever fails meanwhile.
//   - A mechanism that fails or is silent before it ever answered uses what was kept of it from before
//     the channel was idle, if anything was.
//   - A mechanism may turn out to be several, its parts. They take its place once one of them has
//     answered and the others need not be waited for.
//   - After Closed, events call for nothing but the end of what was being started.
package join

import (
	"slices"
	"time"
)

// ID stands for a mechanism. No two of a core have the same; 0 stands for none.
type ID int

// Mechanism is one discovery mechanism: one source.
type Mechanism struct {
	// Name is what people call it. It differs from those of the others, and is empty only
	// where there is no other.
	Name string
	// Source tells one source from another. A part whose name and source are those of a part
	// before it is the same part. It must be comparable; nil equals nothing.
	Source any
	// OutlierDetection is what its cluster says of it, which only the caller understands; ""
	// for nothing.
	OutlierDetection string
	// Given is for the caller. It comes back in Start and Keep.
	Given any
}

// Answer is what a mechanism answered, as far as the core has to know it.
type Answer struct {
	// Content is the answer, which only the caller understands. It must be comparable: equal
	// contents say the same, nil is no answer.
	Content any
	// Why says why no call can be made with it, "" where one can.
	Why string
	// Version is what the source calls it, and Names are the names that it was made from. Both
	// may change while the content does not.
	Version string
	Names   any
}

// Kept is what is kept of a mechanism from before the channel was idle: an answer, or a list of
// parts.
type Kept struct {
	Answer Answer
	Parts  []Mechanism
	// Confirmed is the last time at which it was known to hold.
	Confirmed time.Time
}

// Hears says what can be asked of a source.
type Hears struct {
	LookAgain bool // to look again, because a connection failed
	Failures  bool // to take note that endpoints fail
}

// Config is what is fixed for the life of a core.
type Config struct {
	// Patience is how long a mechanism that is slow holds back the others.
	Patience time.Duration
	// Kept returns what is kept of a mechanism, and whether anything is. Nobody keeps a list of
	// parts of what is a part itself.
	Kept func(ID) (Kept, bool)
}

// Phase is how far a mechanism has come.
type Phase int

// The phases.
const (
	Outstanding Phase = iota // its source has said nothing
	Failed                   // its source failed before it ever answered
	Answered                 // it has an answer, its source's or one that was kept or inherited, or parts
)

// String returns what people call the phase.
func (p Phase) String() string {
	return [...]string{Outstanding: "no answer yet", Failed: "failed", Answered: "answered"}[p]
}

// origin is who said what a mechanism has.
type origin int

const (
	own         origin = iota // its source, which stands by it or has complained since
	memory                    // its source, before the channel was idle
	predecessor               // the source of the part before it, of the same name
)

// Trouble is something that is wrong with a source.
type Trouble struct {
	Text      string // "" where nothing is
	Since     time.Time
	Confirmed time.Time // when the answer in use was last known to hold, zero where none is or it is known to
}

type mechanism struct {
	Mechanism
	id    ID
	whole *mechanism // of which it is a part, nil where it is none
	begun bool       // the start of its source is over, well or not
	gone  bool       // nothing of it counts any more
	hears Hears

	phase  Phase
	answer Answer // the last one, empty while there is none or the parts are in use
	from   origin
	until  time.Time // from predecessor: when that one's source last confirmed it
	number int       // of the last answer, or of the one that was inherited; 0 for none
	err    string    // why there is no answer

	parts  []*mechanism // in its place, nil while it is used itself
	next   []*mechanism // the list that is to follow, nil where none is
	listed bool         // its source said a list last, not an answer

	complaint Trouble   // what its source says is wrong
	lost      Trouble   // why its source cannot hear whether the answer holds
	heard     time.Time // when its source last stood by its answer
	lastError string    // what was wrong last,
	failedAt  time.Time // and when

	waits   waits
	hush    time.Duration // how long ForWord is
	trying  string        // what its source waits for, while it has said nothing else
	overdue bool          // calls are to say that
	told    bool          // its source knows that the channel did not take an update
}

// Core is the state of one channel's mechanisms. Its methods are the events, but for Next and
// Look; they return the actions to be done, in order. Events about a mechanism that is gone
// call for nothing.
type Core struct {
	config  Config
	list    []*mechanism // in priority order
	byID    map[ID]*mechanism
	last    ID
	actions []Action // of the event being handled
	now     time.Time

	answers  int    // so many were given
	starting int    // sources that are being started
	waits    waits  // ForFirst
	sent     bool   // something was sent; from now on it is kept up to date
	changed  bool   // something has not been told yet
	refused  bool   // the channel did not take the last update
	awaiting string // what the channel was told last that it waits for
	closed   bool
}

// New returns a core of mechanisms in priority order, at least one, and how to begin.
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

// add makes a mechanism.
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

// at begins an event. It returns the mechanism that it is about, nil where it does not count.
func (c *Core) at(now time.Time, id ID) *mechanism {
	c.now = now
	if m := c.byID[id]; m != nil && !m.gone && !c.closed {
		return m
	}
	return nil
}

// Started says that a source was started, and what it hears. What it said meanwhile counts from
// now on.
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

// NotStarted says that a source could not be started, and why.
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

// Answered says that a source answered.
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

// Said returns the answer in use of a mechanism, and whether it has answered. The answer is empty
// while its parts are in use.
func (c *Core) Said(id ID) (Answer, bool) {
	m := c.byID[id]
	if m == nil || m.phase != Answered {
		return Answer{}, false
	}
	return m.answer, true
}

// repeats reports whether a is what m's source said last, the channel has it, and nothing that
// calls see has gone wrong since.
func (c *Core) repeats(m *mechanism, a Answer) bool {
	return m.phase == Answered && m.from != predecessor && !c.refused && len(m.all()) == 0 &&
		m.answer.Content == a.Content && !m.failsStill()
}

// use uses an answer of m's source.
func (c *Core) use(m *mechanism, a Answer) {
	c.well(m)
	c.put(m, a, own)
	c.do(Action{Kind: Keep, ID: m.id, Answer: a, At: c.now})
	c.touch(m)
	c.turn()
}

// put puts an answer in the place of all that m had.
func (c *Core) put(m *mechanism, a Answer, from origin) {
	c.spoke(m)
	m.phase, m.answer, m.from, m.err, m.listed = Answered, a, from, "", false
	before := m.all()
	c.end(m, ForList)
	m.parts, m.next = nil, nil
	c.drop(m, before)
}

// Failed says that a source has no answer now, or cannot confirm the last one, and why.
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
			// Until now nothing contradicted it, even where the source is only asked at times.
			c.do(Action{Kind: Confirm, ID: m.id, At: c.now})
		}
		if c.complain(m, why, m.consequence()) && m.answer.Why != "" {
			c.touch(m) // calls see the error
		}
		if m.from == predecessor {
			m.from = own
		}
	case c.recall(m, why):
		return
	default:
		if c.complain(m, why, "") {
			c.touch(m) // calls see the error
		}
		c.spoke(m)
		m.phase, m.err, m.from = Failed, why, own
	}
	c.turn()
}

// recall answers for a source that failed before it ever answered, with what is kept of it. It
// reports whether anything is.
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

// Confirmed says that a source stands by its last answer.
func (c *Core) Confirmed(now time.Time, id ID) []Action {
	m := c.at(now, id)
	if m == nil || m.phase != Answered || m.from != own {
		return nil
	}
	c.confirm(m)
	return c.take()
}

// confirm notes that what m's source said last is so now.
func (c *Core) confirm(m *mechanism) {
	c.well(m)
	c.do(Action{Kind: Confirm, ID: m.id, Answer: m.said(), At: c.now})
}

// said returns the answer that m's source said last, none where that was a list of parts.
func (m *mechanism) said() Answer {
	if m.listed {
		return Answer{}
	}
	return m.answer
}

// Doubted says why a source cannot hear whether its last answer still holds, "" where it can
// again. confirmed is when the answer was last known to hold, zero where something else confirms
// it. Unlike a failure it changes nothing for calls.
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

// Rejected says that a source refused what it was sent, and why: its last answer stays as good as
// it was.
func (c *Core) Rejected(now time.Time, id ID, why string) {
	if m := c.at(now, id); m != nil {
		m.wrong(why, now)
	}
}

// LookAgain says that the channel wants new endpoints, and does not say which. Where several
// mechanisms are in use nobody is asked: endpoints of a management server that are down for long
// would have DNS looked up all the time, the fault that gRFC A37 has ignore_reresolution_requests for.
func (c *Core) LookAgain() []Action {
	if list := c.inUse(); len(list) == 1 {
		return c.EndpointsFail(list[0].id, false)
	}
	return nil
}

// EndpointsFail says that endpoints of a mechanism fail. Its source is asked to look again unless
// such requests are ignored.
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

// Closed says that the channel needs no endpoints any more.
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
		if m.begun { // else once it is
			c.stop(m)
		}
	}
	return c.take()
}

// stop stops the source of m, of which nothing counts any more.
func (c *Core) stop(m *mechanism) {
	c.do(Action{Kind: Stop, ID: m.id})
	delete(c.byID, m.id)
}

// inUse returns the mechanisms in priority order, parts in the place of the whole.
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

// all returns every mechanism: also a whole whose parts are in use, and parts that are not yet.
func (c *Core) all() []*mechanism {
	var list []*mechanism
	for _, m := range c.list {
		list = append(append(list, m), m.all()...)
	}
	return list
}

// touch notes that m has changed, which Next tells if m is in use.
func (c *Core) touch(m *mechanism) {
	c.changed = c.changed || slices.Contains(c.inUse(), m)
}

// holds reports whether the last answer of m's source is confirmed.
func (m *mechanism) holds() bool { return m.phase == Answered && m.complaint.Text == "" }
