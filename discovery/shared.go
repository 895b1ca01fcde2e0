package discovery

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/understudy-lb/understudy/internal/lb/serial"
)

// Shared returns a source that's only started once in a process, no matter how many channels use
// it. For example, many channels can share one watch of a service in a registry. Sources are shared
// if their keys are equal. The key must include everything that determines the endpoints, such as
// credentials, and its type must be defined in the source's package. If two sources have the same
// key but still differ, we use the one that was started first.
//
// A channel that joins later receives the last answer right away, along with any later Fail or
// Unconfirmed that still applies. The source is closed when no channel has used it for the duration
// linger. That way, a channel that's reopened soon doesn't have to wait. If linger is 0, the source
// is closed as soon as no channel uses it.
//
// Update returns the result from the first channel to apply the answer. Channels that are slower
// don't delay the source or the other channels. They get the latest answer when they're ready, and
// may miss earlier ones.
func Shared[K comparable](key K, linger time.Duration, s Source) Source {
	return shared{s, key, linger}
}

type shared struct {
	Source
	key    any
	linger time.Duration
}

func (s shared) Start(r *Receiver) (Started, error) {
	g := join(s.key)
	if err := g.start(s.Source, r); err != nil {
		g.leave(nil, 0)
		return Started{}, err
	}
	m := &member{receiver: r}
	groups.mu.Lock()
	g.members[m], m.waiting = true, g.current
	groups.mu.Unlock()
	m.events.Run(m.deliver)
	return Started{
		Close:           func() { g.leave(m, s.linger) },
		ResolveNow:      g.call(g.started.ResolveNow),
		EndpointsFailed: g.call(g.started.EndpointsFailed),
		Confirmed:       g.started.Confirmed,
	}, nil
}

var groups = struct {
	mu  sync.Mutex // also guards some fields of group and member
	all map[any]*group
}{all: make(map[any]*group)}

// group is a shared source and the channels that use it.
type group struct {
	key any

	starting sync.Mutex
	started  *Started          // nil until the source has been started
	calls    serial.Serializer // runs the functions in started, because their calls mustn't overlap

	// guarded by groups.mu
	users    int         // includes channels that are still starting the source
	timer    *time.Timer // closes the source after linger
	members  map[*member]bool
	current  reports                 // passed to new members
	replaced context.CancelCauseFunc // makes the last call of answer return, if it's still waiting
}

// member is a channel that uses a shared source. While it's busy applying a report, further ones
// are kept in waiting.
type member struct {
	receiver *Receiver
	events   serial.Serializer
	delivery serial.Slot
	waiting  reports // guarded by groups.mu
}

// join adds a user to the key's group, which it creates if necessary.
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

// leave undoes join, and sees to it that the source is closed after linger if there are no users
// left. m is nil if the source couldn't be started.
func (g *group) leave(m *member, linger time.Duration) {
	groups.mu.Lock()
	defer groups.mu.Unlock()
	delete(g.members, m)
	switch g.users--; {
	case g.users > 0:
	case linger == 0:
		g.expire()
	default:
		g.timer = time.AfterFunc(linger, func() {
			groups.mu.Lock()
			defer groups.mu.Unlock()
			g.expire()
		})
	}
}

// expire closes the source, unless it has users again. groups.mu must be held.
func (g *group) expire() {
	if g.users > 0 || groups.all[g.key] != g {
		return
	}
	delete(groups.all, g.key)
	if g.started != nil {
		g.calls.Enqueue(g.started.close)
	}
}

// start starts the source if it isn't running yet. If that fails, the next caller tries again.
func (g *group) start(s Source, first *Receiver) error {
	g.starting.Lock()
	defer g.starting.Unlock()
	if g.started != nil {
		return nil
	}
	started, err := s.Start(g.receiver(first))
	if err == nil {
		g.started = &started
	}
	return err
}

// call wraps one of the source's functions, so that it's called on another goroutine. Otherwise the
// source might answer on the caller's stack. Calls that queue up behind another call of the source
// become one.
func (g *group) call(f func()) func() {
	if f == nil {
		return nil
	}
	waiting := new(serial.Slot)
	return func() { waiting.Enqueue(&g.calls, f) }
}

// The kinds of reports, in the order in which a member receives them.
const (
	trying = iota
	answered
	confirmed
	failed
	unconfirmed // without a time, so it lasts until the source says otherwise
	outdated    // unconfirmed with a time, so it ends with the next answer
	rejected
	kinds
)

// A report makes earlier ones obsolete if they have the same kind, or one of those listed here.
var ends = [kinds][]int{
	answered:    {trying, confirmed, failed, outdated, rejected},
	confirmed:   {trying, failed, outdated},
	unconfirmed: {outdated},
	outdated:    {unconfirmed},
}

// reports has the latest report of each kind, as a function that passes it to a channel.
type reports [kinds]func(*Receiver)

func (r *reports) add(kind int, pass func(*Receiver)) {
	for _, k := range ends[kind] {
		r[k] = nil
	}
	r[kind] = pass
}

func (m *member) deliver() {
	for pass := m.next(); pass != nil; pass = m.next() {
		pass(m.receiver)
	}
}

func (m *member) next() func(*Receiver) {
	groups.mu.Lock()
	defer groups.mu.Unlock()
	for kind, pass := range m.waiting {
		if pass != nil {
			m.waiting[kind] = nil
			return pass
		}
	}
	return nil
}

// report queues a report for each member. groups.mu must be held.
func (g *group) report(kind int, pass func(*Receiver)) {
	g.current.add(kind, pass)
	g.current[confirmed], g.current[rejected] = nil, nil // new members don't need these
	for m := range g.members {
		m.waiting.add(kind, pass)
		m.delivery.Enqueue(&m.events, m.deliver)
	}
}

// answer reports an answer, and waits until the first member has applied it. If there are no
// members, it doesn't wait. It also stops waiting when the next answer arrives.
func (g *group) answer(pass func(*Receiver) error) error {
	applied, done := context.WithCancelCause(context.Background())
	groups.mu.Lock()
	g.report(answered, func(r *Receiver) { done(pass(r)) })
	if g.replaced != nil {
		g.replaced(nil)
	}
	if g.replaced = done; len(g.members) == 0 {
		done(nil)
	}
	groups.mu.Unlock()
	<-applied.Done()
	if err := context.Cause(applied); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

func (g *group) receiver(first *Receiver) *Receiver {
	report := func(kind int, pass func(*Receiver)) {
		groups.mu.Lock()
		defer groups.mu.Unlock()
		g.report(kind, pass)
	}
	return new(Receiver).With(Hooks{
		Update: func(a Answer) error { return g.answer(func(r *Receiver) error { return r.Update(a) }) },
		Mechanisms: func(list []Mechanism) {
			_ = g.answer(func(r *Receiver) error { r.Mechanisms(list); return nil })
		},
		Fail:    func(err error) { report(failed, func(r *Receiver) { r.Fail(err) }) },
		Confirm: func() { report(confirmed, (*Receiver).Confirm) },
		Unconfirmed: func(err error, since time.Time) {
			kind := outdated
			if since.IsZero() {
				kind = unconfirmed
			}
			report(kind, func(r *Receiver) { r.Unconfirmed(err, since) })
		},
		Rejected:   func(err error) { report(rejected, func(r *Receiver) { r.Rejected(err) }) },
		Trying:     func(text string) { report(trying, func(r *Receiver) { r.Trying(text) }) },
		Remembered: first.Remembered,
	})
}
