package join

import (
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// The oracle follows the table in docs/waits.md and the guarantees in the package comment. After
// each event, it computes from the state of all mechanisms what the channel must have received.
// This is slow, but simple. The oracle does not cover refusals, doubts, re-resolution,
// confirmations, the log, and the texts about sources that have not answered. The scenarios test
// these.

var schedules = flag.Int("schedules", 4_000, "number of random schedules to compare with the oracle")

type oracle struct {
	start          time.Time
	list           []*modelMechanism
	kept           map[string]Kept
	firstWaitStart time.Time
	hasSent        bool
	expected       string
	closed         bool
	pendingStarts  int
}

type modelMechanism struct {
	name    string
	source  any
	parent  *modelMechanism
	id      ID
	started bool

	phase           Phase
	answer          Answer
	fromStore       bool
	err             string
	trouble         string
	storedAnswerDue time.Time

	list, nextList  []*modelMechanism
	nextListSince   time.Time
	nextListOverdue bool
}

func (o *oracle) mechanisms() (all []*modelMechanism) {
	for _, m := range o.list {
		all = append(all, m)
		for _, p := range append(slices.Clone(m.list), m.nextList...) {
			if !slices.Contains(all, p) {
				all = append(all, p)
			}
		}
	}
	return all
}

func (o *oracle) byID(id ID) *modelMechanism {
	for _, m := range o.mechanisms() {
		if m.id == id {
			return m
		}
	}
	return nil
}

func (m *modelMechanism) endSilence() { m.storedAnswerDue = time.Time{} }

func (o *oracle) answered(m *modelMechanism, a Answer) {
	m.endSilence()
	// A repeated answer must not be stored again, because another mechanism with the same name may
	// have stored its answer in the meantime.
	repeats := m.phase == Answered && m.answer == a && m.list == nil && m.nextList == nil && (a.Why == "" || m.trouble == "")
	m.phase, m.answer, m.fromStore, m.err, m.trouble = Answered, a, false, "", ""
	m.list, m.nextList = nil, nil
	if !repeats {
		o.kept[m.name] = Kept{Answer: a}
	}
}

func (o *oracle) failed(now time.Time, m *modelMechanism, why string) {
	k, isStored := o.kept[m.name]
	switch {
	case m.phase == Answered:
		m.trouble = why
	case isStored && k.List != nil:
		o.setList(now, m, k.List)
		m.trouble, m.fromStore = why, true
	case isStored:
		m.endSilence()
		m.phase, m.answer, m.err, m.trouble, m.fromStore = Answered, k.Answer, "", why, true
	default:
		m.endSilence()
		m.phase, m.err = Failed, why
	}
}

func (o *oracle) answeredWithList(now time.Time, m *modelMechanism, list []Mechanism) {
	if m.parent != nil {
		o.failed(now, m, errNestedList)
		return
	}
	o.setList(now, m, list)
	m.trouble, m.fromStore = "", false
	o.kept[m.name] = Kept{List: list}
}

func (o *oracle) setList(now time.Time, m *modelMechanism, list []Mechanism) {
	m.endSilence()
	var before []*modelMechanism
	for _, p := range append(slices.Clone(m.list), m.nextList...) {
		if !slices.Contains(before, p) {
			before = append(before, p)
		}
	}
	var next []*modelMechanism
	hasNew := false
	for _, given := range list {
		p := o.findOrCreate(m, before, given)
		hasNew = hasNew || p.id == 0
		next = append(next, p)
	}
	switch {
	case m.list == nil && m.phase != Answered:
		m.list, m.nextList = next, nil
		o.startFirstWait(now, m)
	case slices.Equal(next, m.list):
		m.nextList = nil
	default:
		if m.nextList == nil || m.nextListOverdue && hasNew {
			m.nextListSince, m.nextListOverdue = now, false
		}
		m.nextList = next
	}
	m.phase, m.err = Answered, ""
}

func (o *oracle) findOrCreate(m *modelMechanism, before []*modelMechanism, given Mechanism) *modelMechanism {
	name := m.name + "/" + given.Name
	created := &modelMechanism{name: name, source: given.Source, parent: m}
	for _, b := range before {
		switch {
		case b.name == name && b.source == given.Source:
			return b
		case b.name == name && !b.storedAnswerDue.IsZero():
			created.storedAnswerDue = b.storedAnswerDue
		}
	}
	return created
}

func (o *oracle) startFirstWait(now time.Time, m *modelMechanism) {
	if len(m.list) > 1 && o.firstWaitStart.IsZero() && !o.hasSent {
		o.firstWaitStart = now
	}
}

func (o *oracle) applyTimers(now time.Time) {
	if o.closed {
		return
	}
	for changed := true; changed; {
		changed = false
		for _, m := range o.mechanisms() {
			if !m.storedAnswerDue.IsZero() && !now.Before(m.storedAnswerDue) {
				changed = true
				limit := Hush
				if m.parent != nil && m.parent.fromStore {
					limit = HushOfMechanism
				}
				m.storedAnswerDue = time.Time{}
				o.failed(now, m, "no answer within "+limit.String())
			}
		}
		for _, m := range o.list {
			if m.nextList != nil && o.isNextReady(now, m) {
				changed = true
				m.list, m.nextList, m.answer = m.nextList, nil, Answer{}
				o.startFirstWait(now, m)
			}
		}
	}
}

// isNextReady reports whether the next list of m may replace the list in use. It implements the row
// of docs/waits.md about a new list of mechanisms.
func (o *oracle) isNextReady(now time.Time, m *modelMechanism) bool {
	hasPhase := func(list []*modelMechanism, phase Phase) bool {
		return slices.ContainsFunc(list, func(p *modelMechanism) bool { return p.phase == phase })
	}
	if m.list != nil && !hasPhase(m.list, Answered) {
		return true
	}
	elapsed := !now.Before(m.nextListSince.Add(Patience))
	m.nextListOverdue = m.nextListOverdue || elapsed
	isPending := slices.ContainsFunc(m.nextList, func(p *modelMechanism) bool { return p.phase == Outstanding })
	return hasPhase(m.nextList, Answered) && (elapsed || !isPending)
}

func (o *oracle) expect(now time.Time) string {
	if o.closed || o.pendingStarts > 0 {
		return o.expected
	}
	var inUse []*modelMechanism
	for _, m := range o.list {
		if m.list != nil {
			inUse = append(inUse, m.list...)
		} else {
			inUse = append(inUse, m)
		}
	}
	anyAnswered, anyFailed := false, false
	var first *modelMechanism
	for _, m := range inUse {
		anyAnswered, anyFailed = anyAnswered || m.phase == Answered, anyFailed || m.phase == Failed
		if first == nil && m.phase != Failed {
			first = m
		}
	}
	isWaiting := o.firstWaitStart.IsZero() || now.Before(o.firstWaitStart.Add(Patience))
	switch {
	case o.hasSent:
	case first != nil && first.phase == Outstanding && isWaiting:
		return o.expected
	case anyAnswered:
	case anyFailed:
		o.expected = "report " + expectedNoAnswerText(inUse)
		return o.expected
	default:
		return o.expected
	}
	o.hasSent = true
	var shown []string
	for _, m := range inUse {
		switch {
		case m.phase == Failed:
			shown = append(shown, m.name+" failed: "+m.err)
		case m.phase == Answered && m.answer.Why != "":
			shown = append(shown, fmt.Sprint(m.name, "=", m.answer.Content, " ", m.trouble))
		case m.phase == Answered:
			shown = append(shown, fmt.Sprint(m.name, "=", m.answer.Content))
		}
	}
	o.expected = "send " + strings.Join(shown, ", ")
	return o.expected
}

func expectedNoAnswerText(inUse []*modelMechanism) string {
	var all []string
	for i, m := range inUse {
		if i == 4 {
			all = append(all, fmt.Sprintf("and %d more", len(inUse)-4))
			break
		}
		why := m.err
		if m.phase == Outstanding {
			why = "no answer yet"
		}
		all = append(all, m.name+": "+why)
	}
	return "no entry has an address: " + strings.Join(all, "; ")
}

type comparison struct {
	core     *Core
	oracle   *oracle
	now      time.Time
	kept     map[string]Kept
	names    map[ID]string
	pending  []ID
	running  map[ID]bool
	stopped  map[ID]bool
	received string
	failure  string
	log      []string
}

func (r *comparison) failf(format string, args ...any) {
	if r.failure == "" {
		r.failure = fmt.Sprintf(format, args...)
	}
}

func (r *comparison) process(actions []Action) {
	r.execute(actions)
	for m := r.core.Next(); m.Kind != Nothing; m = r.core.Next() {
		r.recordMessage(m)
		_, actions := r.core.Delivered(true, 0)
		r.execute(actions)
	}
}

func (r *comparison) execute(actions []Action) {
	for _, a := range actions {
		switch a.Kind {
		case Start:
			r.names[a.ID] = a.Name
			r.pending = append(r.pending, a.ID)
			r.assignID(a)
		case Stop:
			if !r.running[a.ID] && !slices.Contains(r.pending, a.ID) || r.stopped[a.ID] {
				r.failf("%s is stopped but not running", r.names[a.ID])
			}
			r.stopped[a.ID] = true
			delete(r.running, a.ID)
		case Keep:
			r.kept[r.names[a.ID]] = Kept{Answer: a.Answer, List: a.List}
		}
	}
}

func (r *comparison) assignID(a Action) {
	for _, m := range r.oracle.mechanisms() {
		if m.id == 0 && m.name == a.Name && m.source == a.Source {
			m.id = a.ID
			return
		}
	}
	r.failf("%s is started unexpectedly", a.Name)
}

func (r *comparison) recordMessage(m Message) {
	switch m.Kind {
	case Report:
		r.received = "report " + m.Text
	case Send:
		var shown []string
		for _, s := range r.core.shown() {
			switch {
			case s.Phase == Failed:
				shown = append(shown, s.Name+" failed: "+s.Failure.Text)
			case s.Answer.Why != "":
				shown = append(shown, fmt.Sprint(s.Name, "=", s.Answer.Content, " ", s.Failure.Text))
			default:
				shown = append(shown, fmt.Sprint(s.Name, "=", s.Answer.Content))
			}
		}
		r.received = "send " + strings.Join(shown, ", ")
	}
}

// shown returns the mechanisms in an update.
func (c *Core) shown() []Status {
	return slices.DeleteFunc(c.Statuses(), func(s Status) bool { return !s.IsInUse() })
}

func (r *comparison) compare() {
	r.oracle.pendingStarts = len(r.pending)
	r.oracle.applyTimers(r.now)
	if want := r.oracle.expect(r.now); r.received != want {
		r.failf("the channel received %q, want %q", r.received, want)
	}
	running := make(map[ID]bool)
	for _, m := range r.oracle.mechanisms() {
		if m.id == 0 {
			r.failf("%s is not started", m.name)
		}
		if m.started && !r.oracle.closed {
			running[m.id] = true
		}
	}
	if !maps.Equal(running, r.running) {
		r.failf("running sources are %v, want %v", r.running, running)
	}
	if got, want := fmt.Sprint(r.kept), fmt.Sprint(r.oracle.kept); got != want {
		r.failf("the cached state is %s, want %s", got, want)
	}
}

func (r *comparison) recall(id ID) (Kept, bool) {
	k, isStored := r.kept[r.names[id]]
	return k, isStored
}
