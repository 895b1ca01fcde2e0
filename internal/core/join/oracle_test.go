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
// This is slow, but simple. Only the scenarios test refusals, doubts, re-resolution, confirmations,
// the log, and the texts about sources that have not answered.

var schedules = flag.Int("schedules", 4_000, "number of random schedules to compare with the oracle")

type oracle struct {
	start   time.Time
	list    []*theirs
	kept    map[string]Kept
	first   time.Time
	sent    bool
	told    string
	closed  bool
	answers int
	pending int
}

type theirs struct {
	name   string
	source any
	whole  *theirs
	id     ID
	begun  bool

	phase     Phase
	answer    Answer
	answered  int
	inherited bool
	recalled  bool
	err       string
	trouble   string
	silentTil time.Time

	parts, next []*theirs
	nextFrom    time.Time
	waited      bool
}

func (o *oracle) alive() (all []*theirs) {
	for _, m := range o.list {
		all = append(all, m)
		for _, p := range append(slices.Clone(m.parts), m.next...) {
			if !slices.Contains(all, p) {
				all = append(all, p)
			}
		}
	}
	return all
}

func (o *oracle) byID(id ID) *theirs {
	for _, m := range o.alive() {
		if m.id == id {
			return m
		}
	}
	return nil
}

func (m *theirs) heard() { m.silentTil = time.Time{} }

func (o *oracle) answered(m *theirs, a Answer) {
	m.heard()
	o.answers++
	m.answered = o.answers
	// A repeated answer must not be stored again, because another mechanism of the same name may have
	// stored its own in the meantime.
	repeats := m.phase == Answered && !m.inherited && m.answer == a && m.parts == nil && m.next == nil && (a.Why == "" || m.trouble == "")
	m.phase, m.answer, m.inherited, m.recalled, m.err, m.trouble = Answered, a, false, false, "", ""
	m.parts, m.next = nil, nil
	if !repeats {
		o.kept[m.name] = Kept{Answer: a}
	}
}

func (o *oracle) failed(now time.Time, m *theirs, why string) {
	k, some := o.kept[m.name]
	switch {
	case m.phase == Answered:
		m.trouble, m.inherited = why, false
	case some && k.Parts != nil:
		o.replaced(now, m, k.Parts)
		m.trouble, m.recalled = why, true
	case some:
		m.heard()
		m.phase, m.answer, m.err, m.trouble, m.recalled, m.inherited = Answered, k.Answer, "", why, true, false
	default:
		m.heard()
		m.phase, m.err, m.inherited = Failed, why, false
	}
}

func (o *oracle) said(now time.Time, m *theirs, list []Mechanism) {
	if m.whole != nil {
		o.failed(now, m, errPartOfPart)
		return
	}
	o.replaced(now, m, list)
	m.trouble, m.recalled = "", false
	o.kept[m.name] = Kept{Parts: list}
}

func (o *oracle) replaced(now time.Time, m *theirs, list []Mechanism) {
	m.heard()
	var before []*theirs
	for _, p := range append(slices.Clone(m.parts), m.next...) {
		if !slices.Contains(before, p) {
			before = append(before, p)
		}
	}
	var next []*theirs
	fresh := false
	for _, given := range list {
		p := o.partOf(m, before, given)
		fresh = fresh || p.id == 0
		next = append(next, p)
	}
	switch {
	case m.parts == nil && m.phase != Answered:
		m.parts, m.next = next, nil
		o.begunParts(now, m)
	case slices.Equal(next, m.parts):
		m.next = nil
	default:
		if m.next == nil || m.waited && fresh {
			m.nextFrom, m.waited = now, false
		}
		m.next = next
	}
	m.phase, m.err = Answered, ""
}

func (o *oracle) partOf(m *theirs, before []*theirs, given Mechanism) *theirs {
	name := m.name + "/" + given.Name
	p := &theirs{name: name, source: given.Source, whole: m}
	var heir *theirs
	for _, b := range before {
		if b.name != name {
			continue
		}
		if b.source == given.Source {
			return b
		}
		if heir == nil || heir.phase != Answered && b.phase == Answered || b.answered > heir.answered {
			heir = b
		}
	}
	if heir != nil {
		p.phase, p.answer, p.err, p.trouble = heir.phase, heir.answer, heir.err, heir.trouble
		p.answered = heir.answered
		p.inherited = heir.phase != Outstanding
	}
	return p
}

func (o *oracle) begunParts(now time.Time, m *theirs) {
	if len(m.parts) > 1 && o.first.IsZero() && !o.sent {
		o.first = now
	}
}

func (o *oracle) settle(now time.Time) {
	if o.closed {
		return
	}
	for changed := true; changed; {
		changed = false
		for _, m := range o.alive() {
			if !m.silentTil.IsZero() && !now.Before(m.silentTil) {
				changed = true
				hush := Hush
				if m.whole != nil && m.whole.recalled {
					hush = HushOfPart
				}
				m.silentTil = time.Time{}
				o.failed(now, m, "nothing was heard for "+hush.String())
			}
		}
		for _, m := range o.list {
			if m.next != nil && o.mayFollow(now, m) {
				changed = true
				m.parts, m.next, m.answer = m.next, nil, Answer{}
				o.begunParts(now, m)
			}
		}
	}
}

// mayFollow implements the row of docs/waits.md about a list that waits to replace the endpoints in
// use.
func (o *oracle) mayFollow(now time.Time, m *theirs) bool {
	is := func(list []*theirs, phase Phase) bool {
		return slices.ContainsFunc(list, func(p *theirs) bool { return p.phase == phase })
	}
	if m.parts != nil && !is(m.parts, Answered) {
		return true
	}
	over := !now.Before(m.nextFrom.Add(Patience))
	m.waited = m.waited || over
	unheard := slices.ContainsFunc(m.next, func(p *theirs) bool { return p.phase == Outstanding || p.inherited })
	return is(m.next, Answered) && (over || !unheard)
}

func (o *oracle) tell(now time.Time) string {
	if o.closed || o.pending > 0 {
		return o.told
	}
	var use []*theirs
	for _, m := range o.list {
		if m.parts != nil {
			use = append(use, m.parts...)
		} else {
			use = append(use, m)
		}
	}
	some, failed := false, false
	var first *theirs
	for _, m := range use {
		some, failed = some || m.phase == Answered, failed || m.phase == Failed
		if first == nil && m.phase != Failed {
			first = m
		}
	}
	patient := o.first.IsZero() || now.Before(o.first.Add(Patience))
	switch {
	case o.sent:
	case first != nil && first.phase == Outstanding && patient:
		return o.told
	case some:
	case failed:
		o.told = "report " + theirReasons(use)
		return o.told
	default:
		return o.told
	}
	o.sent = true
	var shown []string
	for _, m := range use {
		switch {
		case m.phase == Failed:
			shown = append(shown, m.name+" failed: "+m.err)
		case m.phase == Answered && m.answer.Why != "":
			shown = append(shown, fmt.Sprint(m.name, "=", m.answer.Content, " ", m.trouble))
		case m.phase == Answered:
			shown = append(shown, fmt.Sprint(m.name, "=", m.answer.Content))
		}
	}
	o.told = "send " + strings.Join(shown, ", ")
	return o.told
}

func theirReasons(use []*theirs) string {
	var all []string
	for i, m := range use {
		if i == 4 {
			all = append(all, fmt.Sprintf("and %d more", len(use)-4))
			break
		}
		why := m.err
		if m.phase == Outstanding {
			why = "no answer yet"
		}
		all = append(all, m.name+": "+why)
	}
	return "no part has an address: " + strings.Join(all, "; ")
}

type rival struct {
	core    *Core
	oracle  *oracle
	now     time.Time
	timers  map[Timer]time.Time
	kept    map[string]Kept
	names   map[ID]string
	pending []ID
	running map[ID]bool
	told    string
	wrong   string
	log     []string
}

func (r *rival) failf(format string, args ...any) {
	if r.wrong == "" {
		r.wrong = fmt.Sprintf(format, args...)
	}
}

func (r *rival) do(actions []Action) {
	r.act(actions)
	for m := r.core.Next(); m.Kind != Nothing; m = r.core.Next() {
		r.hear(m)
		_, actions := r.core.Taken(true, 0)
		r.act(actions)
	}
}

func (r *rival) act(actions []Action) {
	for _, a := range actions {
		switch a.Kind {
		case Start:
			r.names[a.ID] = a.Name
			r.pending = append(r.pending, a.ID)
			r.adopt(a)
		case Stop:
			if !r.running[a.ID] {
				r.failf("%s is stopped but not running", r.names[a.ID])
			}
			delete(r.running, a.ID)
		case StartTimer:
			r.timers[a.Timer] = r.now.Add(a.After)
		case StopTimer:
			if _, runs := r.timers[a.Timer]; !runs {
				r.failf("a timer is stopped but not running: %v", a.Timer)
			}
			delete(r.timers, a.Timer)
		case Keep:
			r.kept[r.names[a.ID]] = Kept{Answer: a.Answer, Parts: a.Parts}
		}
	}
}

func (r *rival) adopt(a Action) {
	for _, m := range r.oracle.alive() {
		if m.id == 0 && m.name == a.Name && m.source == a.Source {
			m.id = a.ID
			if a.Inherited != (m.phase == Answered) || a.Answer != m.answer {
				r.failf("%s inherits %v, want %v", a.Name, a.Answer, m.answer)
			}
			return
		}
	}
	r.failf("%s is started unexpectedly", a.Name)
}

func (r *rival) hear(m Message) {
	switch m.Kind {
	case Report:
		r.told = "report " + m.Text
	case Send:
		var shown []string
		for _, s := range m.List {
			switch {
			case s.Failed:
				shown = append(shown, s.Name+" failed: "+s.Trouble)
			case s.Answer.Why != "":
				shown = append(shown, fmt.Sprint(s.Name, "=", s.Answer.Content, " ", s.Trouble))
			default:
				shown = append(shown, fmt.Sprint(s.Name, "=", s.Answer.Content))
			}
		}
		r.told = "send " + strings.Join(shown, ", ")
	}
}

func (r *rival) compare() {
	r.oracle.pending = len(r.pending)
	r.oracle.settle(r.now)
	if want := r.oracle.tell(r.now); r.told != want {
		r.failf("the channel received %q, want %q", r.told, want)
	}
	running := make(map[ID]bool)
	for _, m := range r.oracle.alive() {
		if m.id == 0 {
			r.failf("%s is not started", m.name)
		}
		if m.begun && !r.oracle.closed {
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

func (r *rival) recall(id ID) (Kept, bool) {
	k, some := r.kept[r.names[id]]
	return k, some
}
