package discovery

import (
	"fmt"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"github.com/understudy-lb/understudy/internal/lb/serial"
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
	g := join(s.key)
	if err := g.start(s.source, r); err != nil {
		g.leave(0)
		return Started{}, err
	}
	m := &member{group: g, receiver: r}
	g.add(m)
	started := g.started.Load()
	return Started{
		Close: func() {
			g.remove(m)
			g.leave(s.linger)
		},
		ResolveNow:      g.call(started.ResolveNow),
		EndpointsFailed: g.call(started.EndpointsFailed),
		Confirmed:       started.Confirmed,
	}, nil
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

	calls   serial.Serializer       // runs the calls of the source, which must not overlap
	started atomic.Pointer[Started] // nil before the start
	closed  bool                    // used only by calls

	mu      sync.Mutex
	members map[*member]bool
	current reports // what a new member must receive
}

// join returns the group of a key, and counts the caller as a user.
func join(key any) *group {
	groups.mu.Lock()
	defer groups.mu.Unlock()
	g := groups.all[key]
	if g == nil {
		g = &group{key: key, members: make(map[*member]bool)}
		groups.all[key] = g
	}
	if g.users++; g.timer != nil {
		g.timer.Stop()
	}
	return g
}

// leave undoes join. If no user is left, the source is closed after linger.
func (g *group) leave(linger time.Duration) {
	groups.mu.Lock()
	defer groups.mu.Unlock()
	if g.users--; g.users == 0 {
		g.timer = time.AfterFunc(linger, g.expire)
	}
}

func (g *group) expire() {
	groups.mu.Lock()
	defer groups.mu.Unlock()
	if g.users > 0 || groups.all[g.key] != g {
		return
	}
	delete(groups.all, g.key)
	g.calls.Enqueue(func() {
		g.closed = true
		if started := g.started.Load(); started != nil {
			started.close()
		}
	})
}

// start starts the source unless it has already been started; it then does not wait for other calls
// of the source. If the attempt fails, the next caller tries again.
func (g *group) start(s Source, first *Receiver) (err error) {
	if g.started.Load() != nil {
		return nil
	}
	g.calls.Do(func() {
		if g.started.Load() != nil {
			return
		}
		var started Started
		if started, err = s.Start(g.receiver(first)); err == nil {
			g.started.Store(&started)
		}
	})
	return err
}

// call returns a function that calls f, a function of the source, unless the source is closed. The
// call runs on another goroutine, because the source may answer on the caller's stack. Calls that wait
// for another call of the source become one.
func (g *group) call(f func()) func() {
	if f == nil {
		return nil
	}
	waiting := new(serial.Slot)
	return func() {
		waiting.Enqueue(&g.calls, func() {
			if !g.closed {
				f()
			}
		})
	}
}

func (g *group) receiver(first *Receiver) *Receiver {
	return new(Receiver).With(Hooks{
		Update: func(a Answer) error {
			g.record(answered, func(m *member) { m.resolveIfRejected(m.receiver.Update(a)) })
			return nil
		},
		Mechanisms: func(list []Mechanism) {
			g.record(answered, func(m *member) {
				m.receiver.Mechanisms(list)
				m.resolveIfRejected(nil)
			})
		},
		Fail:    func(err error) { g.record(failed, func(m *member) { m.receiver.Fail(err) }) },
		Confirm: func() { g.record(confirmed, func(m *member) { m.receiver.Confirm() }) },
		Unconfirmed: func(err error, since time.Time) {
			kind := unconfirmed
			if !since.IsZero() {
				kind = outdated
			}
			g.record(kind, func(m *member) { m.receiver.Unconfirmed(err, since) })
		},
		Rejected:   func(err error) { g.record(rejected, func(m *member) { m.receiver.Rejected(err) }) },
		Trying:     func(text string) { g.record(trying, func(m *member) { m.receiver.Trying(text) }) },
		Remembered: first.Remembered,
	})
}

// reports holds the last report of each kind that still applies. Each report is a function that
// passes it to a member. They are passed in the order of the kinds.
type reports [kinds]func(*member)

const (
	trying = iota
	answered
	confirmed
	failed
	rejected
	unconfirmed // until the source says otherwise
	outdated    // unconfirmed until the next answer
	kinds
)

// ended contains the kinds of reports that no longer apply after a report of each kind.
var ended = [kinds][]int{
	answered:    {trying, confirmed, failed, outdated},
	confirmed:   {trying, failed, outdated},
	unconfirmed: {outdated},
	outdated:    {unconfirmed},
}

func (s *reports) add(kind int, report func(*member)) {
	for _, k := range ended[kind] {
		s[k] = nil
	}
	s[kind] = report
}

func (g *group) record(kind int, report func(*member)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if kind != rejected { // a new member does not receive earlier rejections
		g.current.add(kind, report)
	}
	for m := range g.members {
		m.pending.add(kind, report)
		m.next.Enqueue(&m.events, m.send)
	}
}

// add adds a member and sends it the current reports on the caller's stack.
func (g *group) add(m *member) {
	g.mu.Lock()
	m.pending = g.current
	g.members[m] = true
	g.mu.Unlock()
	m.events.Do(m.send)
}

// remove removes a member. It may be called from inside a call of the member's receiver.
func (g *group) remove(m *member) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.members, m)
	m.pending = reports{}
}

type member struct {
	group        *group
	receiver     *Receiver
	pending      reports           // not sent yet; guarded by group.mu
	events       serial.Serializer // runs send, and guards lastRejected
	next         serial.Slot
	lastRejected bool
}

// send sends the member the pending reports.
func (m *member) send() {
	m.group.mu.Lock()
	pending := m.pending
	m.pending = reports{}
	m.group.mu.Unlock()
	for _, report := range pending {
		if report != nil {
			report(m)
		}
	}
}

// resolveIfRejected records whether the member has rejected an answer. If the member accepted the
// previous one, a rejection causes a re-resolution.
func (m *member) resolveIfRejected(err error) {
	if resolveNow := m.group.call(m.group.started.Load().ResolveNow); err != nil && !m.lastRejected && resolveNow != nil {
		resolveNow()
	}
	m.lastRejected = err != nil
}
