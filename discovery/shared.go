package discovery

import (
	"fmt"
	"reflect"
	"sync"
	"time"
)

// Shared returns a source that the channels of the process share: all sources with the same key are
// started once. For example, many channels can share one watch of a registry's service. A later
// channel receives the last answer at once, with any later failure or doubt. The source is closed
// linger after its last channel, so that a channel that soon follows need not wait; 0 closes it at
// once.
//
// The key must be comparable, have a type of the source's package, and contain everything that
// determines the result, including credentials: of several sources with one key the first one
// started is used. Channels do not wait for each other, so Update always returns nil to the source.
// If a channel refuses an answer, the source is asked to look again, once until the channel accepts
// one.
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

// groups holds the shared sources by key.
var groups = struct {
	mu  sync.Mutex
	all map[any]*group
}{all: make(map[any]*group)}

// group is a shared source that was started.
type group struct {
	key   any
	users int         // guarded by groups.mu, like timer
	timer *time.Timer // closes the source while it has no users

	starting sync.Mutex
	begun    bool // guarded by starting
	started  Started

	asking sync.Mutex // serializes requests, and prevents them after Close
	ended  bool       // guarded by asking

	mu      sync.Mutex
	members map[*member]bool
	said    state
}

// join returns the group of a source with one more user.
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

// leave removes a user.
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

// start starts the source unless it was started. Concurrent callers wait, and retry after a
// failure.
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

// tellFailing reports to the source that endpoints fail.
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

// note records a result of the source and wakes all members.
func (g *group) note(change func(*state)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	change(&g.said)
	for m := range g.members {
		m.wake()
	}
}

// add sends a new member the present state and then all changes.
func (g *group) add(m *member) {
	g.mu.Lock()
	now := g.said
	m.told.rejected = now.rejected // earlier rejections do not concern it
	g.members[m] = true
	g.mu.Unlock()
	m.tell(now)
	go m.run()
}

// remove removes a member. It may run on the stack of a call of the member.
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

// state is the present result of a shared source. Each number grows when the field beside it is
// set.
type state struct {
	answered  int
	last      func(*Receiver) error // passes on the last answer or list
	confirmed int
	failed    int
	failure   error // since the last answer, nil for none
	rejected  int
	rejection error
	doubted   int
	doubt     doubt
	trying    string
}

// doubt is the reason why a source cannot verify its answer.
type doubt struct {
	err   error
	since time.Time
}

// answer records an answer.
func (s *state) answer(pass func(*Receiver) error) {
	s.answered, s.last = s.answered+1, pass
	s.well()
}

// confirm records that the last answer is confirmed.
func (s *state) confirm() {
	s.confirmed++
	s.well()
}

// well clears what an answer ends.
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
	done     chan struct{} // closed when it no longer uses the source

	// Used by one goroutine at a time: Start, and then run.
	told    state
	refused bool // the channel refused the last answer
}

// wake makes run send the member the changes.
func (m *member) wake() {
	select {
	case m.news <- struct{}{}:
	default: // a wake-up is pending
	}
}

// run sends the member all changes until it is closed.
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

// tell sends the member the changes since the last call.
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
			go m.group.ask() // in a goroutine, because it may answer at once
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
