package discovery

import (
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
// The key must have a type defined in the source's package, and include everything
// that determines the endpoints, such as credentials. If sources with equal keys differ, the one
// that is started first is used. Update returns the error of a channel that rejects the answer.
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
		g.leave(0)
		return Started{}, err
	}
	member := r.With(Hooks{}) // a copy, because r may be started more than once
	// Do would wait for a channel that is slow to apply an answer.
	g.events.Run(func() {
		g.members[member] = true
		for _, report := range g.current {
			if report != nil {
				report(member)
			}
		}
	})
	started := g.started.Load()
	return Started{
		Close: func() {
			g.events.Run(func() { delete(g.members, member) })
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

	events  serial.Serializer // guards the fields below
	members map[*Receiver]bool
	current [kinds]func(*Receiver) // what a new member receives, in the order of the kinds
}

// join returns the group of a key, and counts the caller as a user.
func join(key any) *group {
	groups.mu.Lock()
	defer groups.mu.Unlock()
	g := groups.all[key]
	if g == nil {
		g = &group{key: key, members: make(map[*Receiver]bool)}
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

// These are the kinds of reports that a new member receives, in this order.
const (
	trying = iota
	answered
	failed
	unconfirmed // until the source says otherwise
	outdated    // unconfirmed until the next answer
	kinds
)

// report passes a report to all members, who only queue it. If it has a kind, later members receive
// it, too, until it is ended.
func (g *group) report(pass func(*Receiver), kind int, ended ...int) {
	g.events.Run(func() {
		for _, k := range ended {
			g.current[k] = nil
		}
		if kind >= 0 {
			g.current[kind] = pass
		}
		for m := range g.members {
			pass(m)
		}
	})
}

func (g *group) receiver(first *Receiver) *Receiver {
	const none = -1
	return new(Receiver).With(Hooks{
		Update: func(a Answer) error {
			var rejected atomic.Pointer[error]
			g.report(func(m *Receiver) {
				if err := m.Update(a); err != nil {
					rejected.Store(&err)
				}
			}, answered, trying, failed, outdated)
			if err := rejected.Load(); err != nil {
				return *err
			}
			return nil
		},
		Mechanisms: func(list []Mechanism) {
			g.report(func(m *Receiver) { m.Mechanisms(list) }, answered, trying, failed, outdated)
		},
		Fail:    func(err error) { g.report(func(m *Receiver) { m.Fail(err) }, failed) },
		Confirm: func() { g.report((*Receiver).Confirm, none, trying, failed, outdated) },
		Unconfirmed: func(err error, since time.Time) {
			kind, ended := unconfirmed, outdated
			if !since.IsZero() {
				kind, ended = ended, kind
			}
			g.report(func(m *Receiver) { m.Unconfirmed(err, since) }, kind, ended)
		},
		Rejected:   func(err error) { g.report(func(m *Receiver) { m.Rejected(err) }, none) },
		Trying:     func(text string) { g.report(func(m *Receiver) { m.Trying(text) }, trying) },
		Remembered: first.Remembered,
	})
}
