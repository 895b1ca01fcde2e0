package discovery

import (
	"fmt"
	"reflect"
	"sync"
	"time"
)

// Shared returns a source that several channels can share: of all sources with the same key, the
// process starts only one. For example, many channels can share one watch of a service in a
// registry. A channel that starts using the source later immediately receives the last answer,
// followed by any later call of Fail or Unconfirmed that still applies. The source is closed when
// no channel has used it for the duration linger, so that a channel that is reopened soon does not
// have to wait. If linger is 0, the source is closed as soon as no channel uses it.
//
// The key must be comparable, have a type defined in the source's package, and include everything
// that determines the endpoints, such as credentials. If sources with equal keys differ, the one
// that is started first is used. Channels do not wait for each other, so Update always returns nil
// to the source. If a channel rejects an answer, the source's ResolveNow is called. It is not
// called again for that channel's rejections until the channel has accepted an answer.
func Shared(key any, linger time.Duration, s Source) Source {
	return shared{key, linger, s}
}

type shared struct {
	key    any
	linger time.Duration
	source Source
}

func (s shared) Check(read bool) error {
	if s.key == nil || !reflect.ValueOf(s.key).Comparable() {
		return fmt.Errorf("the key of a shared source has type %T, want a comparable value", s.key)
	}
	return s.source.Check(read)
}

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

var groups = struct {
	mu  sync.Mutex
	all map[any]*group
}{all: make(map[any]*group)}

// group is a shared source with the channels that use it.
type group struct {
	key   any
	users int         // guarded by groups.mu, like timer
	timer *time.Timer // closes the source after linger

	starting sync.Mutex
	begun    bool // guarded by starting
	started  Started

	asking sync.Mutex // held during calls of the source, so that they do not overlap, and none follows Close
	ended  bool       // guarded by asking

	mu      sync.Mutex
	members map[*member]bool
	said    state
}

// join returns the group for the key of s, and counts the caller as a user.
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

// leave undoes join. If no user is left, the source is closed after linger.
func (g *group) leave(linger time.Duration) {
	groups.mu.Lock()
	defer groups.mu.Unlock()
	if g.users--; g.users > 0 {
		return
	}
	var timer *time.Timer
	timer = time.AfterFunc(linger, func() {
		groups.mu.Lock()
		over := g.timer == timer // false if another user has joined since the timer was started
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

// start starts the source if this has not been done yet. Concurrent callers wait. If the attempt
// fails, the next caller tries again.
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

func (g *group) ask() {
	g.asking.Lock()
	defer g.asking.Unlock()
	if !g.ended && g.started.ResolveNow != nil {
		g.started.ResolveNow()
	}
}

func (g *group) tellFailing() {
	g.asking.Lock()
	defer g.asking.Unlock()
	if !g.ended {
		g.started.EndpointsFailed()
	}
}

func (g *group) end() {
	g.asking.Lock()
	defer g.asking.Unlock()
	g.ended = true
	g.started.end()
}

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

func (g *group) note(change func(*state)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	change(&g.said)
	for m := range g.members {
		m.wake()
	}
}

// add adds a member and sends it the current state on the caller's stack. The member's own
// goroutine sends later changes.
func (g *group) add(m *member) {
	g.mu.Lock()
	now := g.said
	m.told.rejected = now.rejected // a member gets no rejections from before it joined
	g.members[m] = true
	g.mu.Unlock()
	m.tell(now)
	go m.run()
}

// remove removes a member. The caller may be inside a call of the member's receiver.
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

// state holds the last reports of a shared source. Each counter is incremented when the field after
// it is set, so that members notice the change.
type state struct {
	answered  int
	last      func(*Receiver) error // passes the last answer or list of mechanisms to a receiver
	confirmed int
	failed    int
	failure   error
	rejected  int
	rejection error
	doubted   int
	doubt     doubt
	trying    string
}

type doubt struct {
	err   error
	since time.Time
}

func (s *state) answer(pass func(*Receiver) error) {
	s.answered, s.last = s.answered+1, pass
	s.well()
}

func (s *state) confirm() {
	s.confirmed++
	s.well()
}

// well is called after an answer or a confirmation. It clears a failure, and other state that has
// ended.
func (s *state) well() {
	s.failure, s.trying = nil, ""
	if !s.doubt.since.IsZero() {
		s.doubt = doubt{}
	}
}

type member struct {
	group    *group
	receiver *Receiver
	news     chan struct{}
	done     chan struct{}

	// The following fields are used by Start, and afterwards only by run.
	told    state
	refused bool
}

func (m *member) wake() {
	select {
	case m.news <- struct{}{}:
	default: // a wake-up is already pending
	}
}

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

// tell sends the member the changes since the last state that it received.
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
			go m.group.ask() // on another goroutine, because the source may answer on the caller's stack
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
