package discovery

import (
	"fmt"
	"reflect"
	"sync"
	"time"
)

// Shared returns a source that is started once in the process for all that have the same key,
// however many channels use it, such as one watch of a service of a registry. A channel that
// comes later gets its last answer at once, with the failure or the doubt since. The source is
// closed linger after the last channel was, so that one that is opened again soon need not wait;
// 0 is at once.
//
// The key has to be comparable, of a type of the package that has the source, and to hold all
// that decides what it finds, credentials among it: of several sources with one key the one that
// is started first is used. No channel waits for another. So Update always returns nil to the
// source; where a channel does not take an answer, the source is asked to look again, once until it does.
func Shared(key any, linger time.Duration, s Source) Source {
	return shared{key, linger, s}
}

type shared struct {
	key    any
	linger time.Duration
	source Source
}

// Check implements Source.
func (s shared) Check(read bool) error {
	if s.key == nil || !reflect.ValueOf(s.key).Comparable() {
		return fmt.Errorf("a source is shared by a key of type %T, want one that can be compared", s.key)
	}
	return s.source.Check(read)
}

// Start implements Source.
func (s shared) Start(r *Receiver) (Started, error) {
	if err := s.Check(false); err != nil {
		return Started{}, err
	}
	g := join(s)
	if err := g.start(s.source, r); err != nil {
		g.leave(0)
		return Started{}, err
	}
	m := &member{group: g, receiver: r, news: make(chan struct{}, 1), done: make(chan struct{})}
	g.add(m)
	started := Started{Close: func() { g.remove(m, s.linger) }}
	if g.started.ResolveNow != nil {
		started.ResolveNow = g.ask
	}
	if g.started.EndpointsFailed != nil {
		started.EndpointsFailed = g.tellFailing
	}
	if g.started.Confirmed != nil {
		started.Confirmed = g.started.Confirmed
	}
	return started, nil
}

// groups are the sources that are shared, by their keys.
var groups = struct {
	mu  sync.Mutex
	all map[any]*group
}{all: make(map[any]*group)}

// group is a shared source at work.
type group struct {
	key   any
	users int         // guarded by groups.mu, as the timer is
	timer *time.Timer // closes the source, while it has no users

	starting sync.Mutex
	begun    bool // guarded by starting
	started  Started

	asking sync.Mutex // one question at a time, and none after Close
	ended  bool       // guarded by asking

	mu      sync.Mutex
	members map[*member]bool
	said    state
}

// join returns the group of a source, which has one user more.
func join(s shared) *group {
	groups.mu.Lock()
	defer groups.mu.Unlock()
	g := groups.all[s.key]
	if g == nil {
		g = &group{key: s.key, members: make(map[*member]bool)}
		groups.all[s.key] = g
	}
	if g.users++; g.timer != nil {
		g.timer.Stop()
		g.timer = nil
	}
	return g
}

// leave takes a user out.
func (g *group) leave(linger time.Duration) {
	groups.mu.Lock()
	defer groups.mu.Unlock()
	if g.users--; g.users > 0 {
		return
	}
	var timer *time.Timer
	timer = time.AfterFunc(linger, func() {
		groups.mu.Lock()
		over := g.timer == timer // nobody has joined since
		if over {
			delete(groups.all, g.key)
		}
		groups.mu.Unlock()
		if over {
			g.end()
		}
	})
	g.timer = timer
}

// start starts the source, unless it was. Whoever comes meanwhile waits, and tries as well where
// that failed.
func (g *group) start(s Source, first *Receiver) error {
	g.starting.Lock()
	defer g.starting.Unlock()
	if !g.begun {
		started, err := s.Start(g.receiver(first))
		if err != nil {
			return err
		}
		g.begun, g.started = true, started
	}
	return nil
}

// ask asks the source to look again.
func (g *group) ask() {
	g.asking.Lock()
	defer g.asking.Unlock()
	if !g.ended && g.started.ResolveNow != nil {
		g.started.ResolveNow()
	}
}

// tellFailing tells the source that endpoints fail.
func (g *group) tellFailing() {
	g.asking.Lock()
	defer g.asking.Unlock()
	if !g.ended {
		g.started.EndpointsFailed()
	}
}

// end closes the source, if it was started.
func (g *group) end() {
	g.asking.Lock()
	defer g.asking.Unlock()
	g.ended = true
	g.started.end()
}

// receiver returns the receiver of the source.
func (g *group) receiver(first *Receiver) *Receiver {
	return new(Receiver).With(Hooks{
		Update: func(a Answer) error {
			g.note(func(s *state) { s.answer(func(r *Receiver) error { return r.Update(a) }) })
			return nil
		},
		Parts: func(parts []Mechanism) {
			g.note(func(s *state) { s.answer(func(r *Receiver) error { r.Parts(parts); return nil }) })
		},
		Fail:    func(err error) { g.note(func(s *state) { s.failed, s.failure = s.failed+1, err }) },
		Confirm: func() { g.note((*state).confirm) },
		Unconfirmed: func(err error, since time.Time) {
			g.note(func(s *state) { s.doubted, s.doubt = s.doubted+1, doubt{err, since} })
		},
		Rejected:   func(err error) { g.note(func(s *state) { s.rejected, s.rejection = s.rejected+1, err }) },
		Trying:     func(text string) { g.note(func(s *state) { s.trying = text }) },
		Remembered: first.Remembered,
	})
}

// note notes what the source says, and has all members told.
func (g *group) note(change func(*state)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	change(&g.said)
	for m := range g.members {
		m.wake()
	}
}

// add tells a new member what there is, and has it told what comes.
func (g *group) add(m *member) {
	g.mu.Lock()
	now := g.said
	m.told.rejected = now.rejected // those were before its time
	g.members[m] = true
	g.mu.Unlock()
	m.tell(now)
	go m.run()
}

// remove takes a member out. It may be on the stack of a call of the member.
func (g *group) remove(m *member, linger time.Duration) {
	g.mu.Lock()
	there := g.members[m]
	delete(g.members, m)
	g.mu.Unlock()
	if there {
		close(m.done)
		g.leave(linger)
	}
}

// state is all that a shared source has said that counts. Each number grows when what stands
// beside it is said.
type state struct {
	answered  int
	last      func(*Receiver) error // passes on the last answer, or list of parts
	confirmed int
	failed    int
	failure   error // since the last answer, nil for none
	rejected  int
	rejection error
	doubted   int
	doubt     doubt
	trying    string
}

// doubt is why a source does not know whether its answer holds, if it does not.
type doubt struct {
	err   error
	since time.Time
}

// answer notes an answer.
func (s *state) answer(pass func(*Receiver) error) {
	s.answered, s.last = s.answered+1, pass
	s.well()
}

// confirm notes that the last answer is current.
func (s *state) confirm() {
	s.confirmed++
	s.well()
}

// well ends what the next answer ends.
func (s *state) well() {
	s.failure, s.trying = nil, ""
	if !s.doubt.since.IsZero() {
		s.doubt = doubt{}
	}
}

// member is a channel that uses a shared source.
type member struct {
	group    *group
	receiver *Receiver
	news     chan struct{}
	done     chan struct{} // closed when it uses the source no longer

	// Used by one goroutine at a time: Start, and then run.
	told    state
	refused bool // the channel did not take the last answer
}

// wake has the member told what is new.
func (m *member) wake() {
	select {
	case m.news <- struct{}{}:
	default: // it will be told this as well
	}
}

// run tells the member what is new until it is closed.
func (m *member) run() {
	for {
		select {
		case <-m.done:
			return
		case <-m.news:
		}
		select {
		case <-m.done:
			return
		default:
		}
		m.group.mu.Lock()
		now := m.group.said
		m.group.mu.Unlock()
		m.tell(now)
	}
}

// tell tells the member what it was not told yet.
func (m *member) tell(now state) {
	r, before := m.receiver, m.told
	m.told = now
	if now.trying != before.trying && now.answered == 0 {
		r.Trying(now.trying)
	}
	switch {
	case now.answered != before.answered:
		before.failed = 0
		refused := now.last(r) != nil
		if refused && !m.refused {
			go m.group.ask() // it may answer at once
		}
		m.refused = refused
	case now.confirmed != before.confirmed:
		r.Confirm()
		before.failed = 0
	}
	if now.failure != nil && now.failed != before.failed {
		r.Fail(now.failure)
	}
	if now.rejected != before.rejected {
		r.Rejected(now.rejection)
	}
	if now.doubted != before.doubted || now.doubt.err != nil {
		r.Unconfirmed(now.doubt.err, now.doubt.since)
	}
}
