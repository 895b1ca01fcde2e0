package discovery

import (
	"context"
	"errors"
	"sync"
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
// The key must have a type defined in the source's package, and include everything
// that determines the endpoints, such as credentials. If sources with equal keys differ, the one
// that is started first is used.
//
// Update returns what the first channel says that has applied the answer. If a slower channel
// rejects it, the source's ResolveNow is called. Slow channels don't delay the source or the other
// channels. When they're ready they get the latest answer, and may miss earlier ones.
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
	m := &member{Receiver: r}
	groups.mu.Lock()
	g.members[m], m.waiting = true, g.current
	groups.mu.Unlock()
	m.events.Run(m.deliver)
	started := *g.started
	started.Close = func() { g.leave(m, s.linger) }
	return started, nil
}

var groups = struct {
	mu  sync.Mutex // also guards fields of group and member
	all map[any]*group
}{all: make(map[any]*group)}

// group is a shared source with the channels that use it.
type group struct {
	key any

	starting sync.Mutex
	started  *Started          // nil before the start
	calls    serial.Serializer // runs the calls of the source, which must not overlap

	// guarded by groups.mu
	users    int         // members, and channels that start the source
	timer    *time.Timer // closes the source after linger
	members  map[*member]bool
	current  reports                 // what a new member gets
	replaced context.CancelCauseFunc // ends the wait of the last answer
}

// member is a channel that uses a shared source. Reports for it wait while it applies others.
type member struct {
	*Receiver
	events   serial.Serializer
	delivery serial.Slot

	// guarded by groups.mu
	waiting reports
	refuses bool // the last answer
}

// join returns the group of a key, and counts the caller as a user.
func join(key any) *group {
	groups.mu.Lock()
	defer groups.mu.Unlock()
	g := groups.all[key]
	if g == nil {
		g = &group{key: key, members: make(map[*member]bool), replaced: func(error) {}}
		groups.all[key] = g
	}
	if g.users++; g.timer != nil {
		g.timer.Stop()
	}
	return g
}

// leave undoes join. If no user is left, the source is closed after linger. m is nil if the source
// couldn't be started.
func (g *group) leave(m *member, linger time.Duration) {
	groups.mu.Lock()
	defer groups.mu.Unlock()
	if delete(g.members, m); len(g.members) == 0 {
		g.replaced(nil) // m may hang
	}
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

// expire closes the source unless it is used again. groups.mu must be locked.
func (g *group) expire() {
	if g.users > 0 || groups.all[g.key] != g {
		return
	}
	delete(groups.all, g.key)
	if g.started != nil {
		g.calls.Enqueue(g.started.close)
	}
}

// start starts the source unless it has already been started. If the attempt fails, the next caller
// tries again.
func (g *group) start(s Source, first *Receiver) error {
	g.starting.Lock()
	defer g.starting.Unlock()
	if g.started != nil {
		return nil
	}
	started, err := s.Start(g.receiver(first))
	if err == nil {
		started.ResolveNow, started.EndpointsFailed = g.call(started.ResolveNow), g.call(started.EndpointsFailed)
		g.started = &started
	}
	return err
}

// call returns a function that calls f, a function of the source, on another goroutine, because the
// source may answer on the caller's stack. Calls that wait for another call of the source become
// one.
func (g *group) call(f func()) func() {
	if f == nil {
		return nil
	}
	waiting := new(serial.Slot)
	return func() { waiting.Enqueue(&g.calls, f) }
}

// These are the kinds of reports, in the order in which a member gets them.
const (
	trying = iota
	answered
	confirmed
	failed
	unconfirmed // until the source says otherwise
	outdated    // unconfirmed until the next answer
	rejected
	kinds
)

// ends lists the kinds of earlier reports that a report makes obsolete, besides its own kind.
var ends = [kinds][]int{
	answered:    {trying, confirmed, failed, outdated, rejected},
	confirmed:   {trying, failed, outdated},
	unconfirmed: {outdated},
	outdated:    {unconfirmed},
}

// reports holds the latest report of each kind, as a function that passes it to a channel.
type reports [kinds]func(*member)

func (r *reports) add(kind int, pass func(*member)) {
	for _, k := range ends[kind] {
		r[k] = nil
	}
	r[kind] = pass
}

func (m *member) deliver() {
	groups.mu.Lock()
	for kind := 0; kind < kinds; kind++ {
		if pass := m.waiting[kind]; pass != nil {
			m.waiting[kind] = nil
			groups.mu.Unlock()
			pass(m)
			groups.mu.Lock()
			kind = -1 // there may be new reports, so start over
		}
	}
	groups.mu.Unlock()
}

// report queues a report for each member. groups.mu must be locked.
func (g *group) report(kind int, pass func(*member)) {
	g.current.add(kind, pass)
	g.current[confirmed], g.current[rejected] = nil, nil // new members need neither
	for m := range g.members {
		if m.waiting[outdated] != nil && (kind == answered || kind == confirmed) {
			m.waiting[unconfirmed] = func(m *member) { m.Unconfirmed(nil, time.Time{}) } // outdated would have replaced an earlier one
		}
		m.waiting.add(kind, pass)
		m.delivery.Enqueue(&m.events, m.deliver)
	}
}

// answer reports an answer and waits for the first member that has applied it, unless there's no
// member, or the next answer comes first. If a later member rejects the answer, the source is asked
// to resolve again instead.
func (g *group) answer(pass func(*Receiver) error) error {
	applied, done := context.WithCancelCause(context.Background())
	groups.mu.Lock()
	g.report(answered, func(m *member) {
		err := pass(m.Receiver)
		done(err)
		groups.mu.Lock()
		defer groups.mu.Unlock()
		if err != nil && !m.refuses && g.members[m] && g.started.ResolveNow != nil && errors.Is(context.Cause(applied), context.Canceled) {
			g.started.ResolveNow()
		}
		m.refuses = err != nil
	})
	g.replaced(nil)
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
	report := func(kind int, pass func(*member)) {
		groups.mu.Lock()
		defer groups.mu.Unlock()
		g.report(kind, pass)
	}
	return new(Receiver).With(Hooks{
		Update: func(a Answer) error { return g.answer(func(r *Receiver) error { return r.Update(a) }) },
		Mechanisms: func(list []Mechanism) {
			_ = g.answer(func(r *Receiver) error { r.Mechanisms(list); return nil })
		},
		Fail:    func(err error) { report(failed, func(m *member) { m.Fail(err) }) },
		Confirm: func() { report(confirmed, (*member).Confirm) },
		Unconfirmed: func(err error, since time.Time) {
			kind := outdated
			if since.IsZero() {
				kind = unconfirmed
			}
			report(kind, func(m *member) { m.Unconfirmed(err, since) })
		},
		Rejected:   func(err error) { report(rejected, func(m *member) { m.Rejected(err) }) },
		Trying:     func(text string) { report(trying, func(m *member) { m.Trying(text) }) },
		Remembered: first.Remembered,
	})
}
