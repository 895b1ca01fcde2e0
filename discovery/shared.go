package discovery

import (
	"fmt"
	"reflect"
	"sync"
	"time"
)

// Shared returns a source that several channels can share: the process starts only one of all
// sources with the same key. For example, many channels can share one watch of a service in a
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
	m := &member{group: g, receiver: r, changed: make(chan struct{}, 1), done: make(chan struct{})}
	g.add(m)
	started := Started{Close: func() { g.remove(m, s.linger) }}
	if g.started.ResolveNow != nil {
		started.ResolveNow = g.resolveNow
	}
	if g.started.EndpointsFailed != nil {
		started.EndpointsFailed = g.endpointsFailed
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
	users int         // number of channels; guarded by groups.mu
	timer *time.Timer // closes the source after linger; guarded by groups.mu

	startMu    sync.Mutex
	hasStarted bool // guarded by startMu
	started    Started

	callMu sync.Mutex // held during each call of the source, so that calls do not overlap
	closed bool       // guarded by callMu

	mu      sync.Mutex
	members map[*member]bool
	last    reports
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

// leave undoes join when a channel no longer uses the group. If no channel is left, the source is
// closed after linger.
func (g *group) leave(linger time.Duration) {
	groups.mu.Lock()
	defer groups.mu.Unlock()
	if g.users--; g.users > 0 {
		return
	}
	var timer *time.Timer
	timer = time.AfterFunc(linger, func() {
		groups.mu.Lock()
		expired := g.timer == timer // false if a channel has joined since the timer was started
		if expired {
			delete(groups.all, g.key)
		}
		groups.mu.Unlock()
		if expired {
			g.close()
		}
	})
	g.timer = timer
}

// start starts the source unless it has already been started. Concurrent callers wait. If the
// attempt fails, the next caller tries again.
func (g *group) start(s Source, first *Receiver) error {
	g.startMu.Lock()
	defer g.startMu.Unlock()
	if !g.hasStarted {
		started, err := s.Start(g.receiver(first))
		if err != nil {
			return err
		}
		g.hasStarted, g.started = true, started
	}
	return nil
}

func (g *group) resolveNow() {
	g.callMu.Lock()
	defer g.callMu.Unlock()
	if !g.closed && g.started.ResolveNow != nil {
		g.started.ResolveNow()
	}
}

func (g *group) endpointsFailed() {
	g.callMu.Lock()
	defer g.callMu.Unlock()
	if !g.closed {
		g.started.EndpointsFailed()
	}
}

func (g *group) close() {
	g.callMu.Lock()
	defer g.callMu.Unlock()
	g.closed = true
	g.started.close()
}

func (g *group) receiver(first *Receiver) *Receiver {
	return new(Receiver).With(Hooks{
		Update: func(a Answer) error {
			g.record(func(s *reports) { s.answer(func(r *Receiver) error { return r.Update(a) }) })
			return nil
		},
		Mechanisms: func(mechanisms []Mechanism) {
			g.record(func(s *reports) { s.answer(func(r *Receiver) error { r.Mechanisms(mechanisms); return nil }) })
		},
		Fail:    func(err error) { g.record(func(s *reports) { s.failCount, s.failErr = s.failCount+1, err }) },
		Confirm: func() { g.record((*reports).confirm) },
		Unconfirmed: func(err error, since time.Time) {
			g.record(func(s *reports) {
				s.unconfirmedCount, s.unconfirmed = s.unconfirmedCount+1, unconfirmedReport{err, since}
			})
		},
		Rejected:   func(err error) { g.record(func(s *reports) { s.rejectCount, s.rejectErr = s.rejectCount+1, err }) },
		Trying:     func(text string) { g.record(func(s *reports) { s.trying = text }) },
		Remembered: first.Remembered,
	})
}

func (g *group) record(change func(*reports)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	change(&g.last)
	for m := range g.members {
		m.wake()
	}
}

// add adds a member and sends it the current reports on the caller's stack. The member's own
// goroutine sends later changes.
func (g *group) add(m *member) {
	g.mu.Lock()
	current := g.last
	m.sent.rejectCount = current.rejectCount // a member does not receive earlier rejections
	g.members[m] = true
	g.mu.Unlock()
	m.send(current)
	go m.run()
}

// remove removes a member. It may be called from inside a call of the member's receiver.
func (g *group) remove(m *member, linger time.Duration) {
	g.mu.Lock()
	isMember := g.members[m]
	delete(g.members, m)
	g.mu.Unlock()
	if isMember {
		close(m.done)
		g.leave(linger)
	}
}

// reports holds the last reports of a shared source. Each counter is incremented when the field
// after it is set, so that members notice the change.
type reports struct {
	answerCount      int
	sendAnswer       func(*Receiver) error // passes the last answer or list of mechanisms to a receiver
	confirmCount     int
	failCount        int
	failErr          error
	rejectCount      int
	rejectErr        error
	unconfirmedCount int
	unconfirmed      unconfirmedReport
	trying           string
}

type unconfirmedReport struct {
	err   error
	since time.Time
}

func (s *reports) answer(pass func(*Receiver) error) {
	s.answerCount, s.sendAnswer = s.answerCount+1, pass
	s.clearFailure()
}

func (s *reports) confirm() {
	s.confirmCount++
	s.clearFailure()
}

// clearFailure is called after an answer or a confirmation. It clears the failure and the
// description of what the source is waiting for. It also clears an unconfirmed report that has a
// time.
func (s *reports) clearFailure() {
	s.failErr, s.trying = nil, ""
	if !s.unconfirmed.since.IsZero() {
		s.unconfirmed = unconfirmedReport{}
	}
}

type member struct {
	group    *group
	receiver *Receiver
	changed  chan struct{}
	done     chan struct{}

	// The following fields are used by add, and afterwards only by run.
	sent         reports
	lastRejected bool
}

func (m *member) wake() {
	select {
	case m.changed <- struct{}{}:
	default: // a wake-up is already pending
	}
}

func (m *member) run() {
	for {
		select {
		case <-m.done:
			return
		case <-m.changed:
		}
		select {
		case <-m.done:
			return
		default:
		}
		m.group.mu.Lock()
		current := m.group.last
		m.group.mu.Unlock()
		m.send(current)
	}
}

// send sends the member the changes since the reports that it received last.
func (m *member) send(current reports) {
	r, previous := m.receiver, m.sent
	m.sent = current
	if current.trying != previous.trying && current.answerCount == 0 {
		r.Trying(current.trying)
	}
	switch {
	case current.answerCount != previous.answerCount:
		previous.failCount = 0
		refused := current.sendAnswer(r) != nil
		if refused && !m.lastRejected {
			go m.group.resolveNow() // not on this goroutine, because the source may answer on the caller's stack
		}
		m.lastRejected = refused
	case current.confirmCount != previous.confirmCount:
		r.Confirm()
		previous.failCount = 0
	}
	if current.failErr != nil && current.failCount != previous.failCount {
		r.Fail(current.failErr)
	}
	if current.rejectCount != previous.rejectCount {
		r.Rejected(current.rejectErr)
	}
	if current.unconfirmedCount != previous.unconfirmedCount || current.unconfirmed.err != nil {
		r.Unconfirmed(current.unconfirmed.err, current.unconfirmed.since)
	}
}
