package join

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"sync/atomic"
	"time"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/channel/topology"
	core "github.com/understudy-lb/understudy/internal/core/join"
	"github.com/understudy-lb/understudy/internal/lb/serial"
	"github.com/understudy-lb/understudy/internal/text/printable"
)

// source is the source of one mechanism, from its start until the mechanism is removed.
type source struct {
	discovery.Source
	join   *Join
	id     core.ID
	name   string
	key    any     // see Entry.Key
	entry  *Entry  // the one this mechanism came from
	parent *source // sent the list with this mechanism, or nil
	*inherited

	// tree was made from content and prefer.
	content *topology.Checked
	prefer  string
	tree    topology.Tree

	maxAge       time.Duration                    // of the stored answer
	ownTime      atomic.Bool                      // Confirmed says when its answer was confirmed; it may have lost its server without noticing
	removed      atomic.Bool                      // once set, we ignore any further reports from the source
	latestAnswer atomic.Pointer[topology.Checked] // initially the stored answer; equal answers must share a pointer, since the core compares pointers
	coreAnswer   atomic.Pointer[topology.Checked] // the last answer we gave to the core
	queuedAnswer atomic.Pointer[serial.Slot]      // the queued answer, or nil if the last queued event isn't an answer

	// The fields below are only used by events of Join.sourceCalls.
	running                              *discovery.Started // nil unless the source was started
	resolveNow, endpointsFailed, confirm serial.Slot
}

// inherited is what a mechanism inherits if the previous list had a mechanism of the same name.
// Without it, the child policies would get new names, and we'd lose their connections.
type inherited struct {
	translator topology.Translator
	logged     lastTexts
	told       time.Time // when we told the program's logger that the source is failing, or zero
}

func (j *Join) addSource(a *core.Action) *source {
	s := &source{Source: a.Source.(discovery.Source), join: j, id: a.ID, name: a.Name, parent: j.sources[a.Parent], maxAge: keepFor}
	if s.parent == nil {
		s.entry = a.Given.(*Entry)
		s.key = s.entry.Key
	} else if s.entry = s.parent.entry; s.parent.key != nil {
		s.key = storeKey{s.parent.key, s.name}
	}
	for _, other := range j.sources {
		if other.name == s.name && other.parent == s.parent {
			// We're replacing a mechanism. Its answer may well be in use right now, so it's good enough
			// for us no matter how old it is.
			s.inherited, s.maxAge = other.inherited, math.MaxInt64
		}
	}
	if s.inherited == nil {
		s.inherited = &inherited{topology.Translator{Name: j.childName(s.name), ServerName: s.entry.ServerName, TrustNames: s.entry.TrustNames}, make(lastTexts), time.Time{}}
	}
	lastGood.acquire(s.key)
	j.sources[a.ID] = s
	return s
}

// childName returns a prefix for the names of a mechanism's children. An only child gets the prefix
// itself as its name. We append a number if the names could clash with those of another mechanism's
// children.
func (j *Join) childName(name string) string {
	for i, unique := 2, name; ; i++ {
		taken := false
		for _, s := range j.sources {
			other := s.translator.Name
			taken = taken || other == unique || strings.HasPrefix(other, unique+"/child") || strings.HasPrefix(unique, other+"/child")
		}
		if !taken {
			return unique
		}
		// There's no "/" in the new name, so it can't be a prefix of another mechanism's child.
		unique = fmt.Sprintf("%s'%d", strings.ReplaceAll(name, "/", "'"), i)
	}
}

func (j *Join) startSource(s *source) {
	var hears core.Hears
	if !s.isClosed() {
		stored, _ := s.kept()
		started, err := s.Start(s.receiver(stored))
		if err == nil {
			s.running = &started
			s.ownTime.Store(started.Confirmed != nil)
			hears = core.Hears{ResolveNow: started.ResolveNow != nil, EndpointsFailed: started.EndpointsFailed != nil}
		} else {
			j.notStarted(s, err)
		}
	}
	j.events.Do(func() { j.execute(j.core.Started(time.Now(), s.id, hears)) })
}

func (s *source) kept() (core.Kept, bool) { return lastGood.get(s.key, time.Now(), s.maxAge) }

func (j *Join) notStarted(s *source, err error) {
	text := j.textOf(err)
	j.events.Do(func() {
		j.count(s, resultOf(err))
		j.execute(j.core.Failed(time.Now(), s.id, text))
		if len(j.config.Entries) == 1 && s.parent == nil && j.core.Statuses()[0].Phase == core.Failed {
			if j.startErr = err; s.name != "" {
				j.startErr = fmt.Errorf("%s: %w", printable.Quote(s.name), err)
			}
		}
	})
}

func (s *source) stop() {
	lastGood.release(s.key, time.Now())
	if s.running != nil && s.running.Close != nil {
		s.running.Close()
	}
}

func (s *source) ifRunning(f func(*discovery.Started)) {
	if s.running != nil && s.join.closed.Load() == nil {
		f(s.running)
	}
}

func (s *source) receiver(stored core.Kept) *discovery.Receiver {
	j := s.join
	c, _ := stored.Answer.Content.(*topology.Checked)
	s.latestAnswer.Store(c)
	return new(discovery.Receiver).With(discovery.Hooks{
		Update:  s.update,
		Fail:    s.fail,
		Confirm: func() { s.enqueueEvent(func(now time.Time) []core.Action { return j.core.Confirmed(now, s.id) }) },
		Unconfirmed: func(err error, until time.Time) {
			text := ""
			if err != nil {
				text = j.textOf(err)
			}
			s.enqueueEvent(func(now time.Time) []core.Action { return j.core.Doubted(now, s.id, text, until) })
		},
		Rejected: func(err error) {
			text := j.textOf(err)
			s.enqueueEvent(func(now time.Time) []core.Action {
				j.count(s, "refused")
				j.core.Rejected(now, s.id, text)
				return nil
			})
		},
		Trying: func(text string) {
			text = j.textOf(errors.New(text))
			s.enqueueEvent(func(now time.Time) []core.Action { return j.core.Trying(now, s.id, text) })
		},
		Mechanisms: s.replace,
		Remembered: func() map[string]discovery.Name {
			if s.isClosed() {
				return nil
			}
			return lookupsOf(stored.Answer)
		},
	})
}

func (s *source) isClosed() bool { return s.join.closed.Load() != nil || s.removed.Load() }

func (s *source) enqueueEvent(actions func(time.Time) []core.Action) {
	if s.isClosed() {
		return
	}
	s.queuedAnswer.Store(nil)
	s.join.events.Enqueue(func() { s.join.execute(actions(time.Now())) })
}

func (s *source) fail(err error) {
	text := s.join.textOf(err)
	s.enqueueEvent(func(now time.Time) []core.Action {
		s.join.count(s, resultOf(err))
		return s.join.core.Failed(now, s.id, text)
	})
}

// Answers are normally queued. But a gRPC resolver wants to know whether the channel returns an
// error, so we send its answers to the channel right here, on the caller's stack. If other events
// are running at the time, we return nil instead of waiting for our turn.
func (s *source) update(a discovery.Answer) error {
	if s.isClosed() {
		return nil
	}
	last, used := s.latestAnswer.Load(), s.coreAnswer.Load()
	switch {
	case last != nil && topology.Equal(last.Given, &a):
	case used != nil && topology.Equal(used.Given, &a):
		last = used
	default:
		err := topology.CheckNotEmpty(&a)
		if err == nil {
			last, err = topology.Check(&a, last)
		}
		if err != nil {
			s.fail(err)
			return err
		}
	}
	s.latestAnswer.Store(last)
	answer := core.Answer{Content: last, Why: last.Why, Version: a.Version, Names: lookups(a.Names)}
	if a.Resolved == nil {
		s.enqueue(answer)
		return nil
	}
	call := &pendingUpdate{id: s.id}
	s.queuedAnswer.Store(nil)
	s.join.events.Run(func() {
		s.join.pendingUpdate = call
		s.answered(answer)
	})
	if err := call.refusal.Load(); err != nil {
		return *err
	}
	return nil
}

func (s *source) answered(a core.Answer) {
	s.coreAnswer.Store(a.Content.(*topology.Checked))
	s.join.execute(s.join.core.Answered(time.Now(), s.id, a))
}

func (s *source) replace(mechanisms []discovery.Mechanism) {
	var list []core.Mechanism
	for _, m := range mechanisms {
		outliers, err := topology.ParseOutlierDetection(m.OutlierDetection)
		if err != nil {
			s.fail(fmt.Errorf("mechanism %q: %w", m.Name, err))
			return
		}
		if !reflect.ValueOf(m.Source).Comparable() {
			m.Source = &struct{ discovery.Source }{m.Source}
		}
		list = append(list, core.Mechanism{Name: m.Name, Source: m.Source, Prefer: m.Prefer, OutlierDetection: m.OutlierDetection, Given: outliers})
	}
	s.enqueueEvent(func(now time.Time) []core.Action { return s.join.core.Replaced(now, s.id, list) })
}

// A new answer replaces one that's still queued. Otherwise, a source that's faster than the channel
// would fill up the queue.
func (s *source) enqueue(a core.Answer) {
	queued := s.queuedAnswer.Load()
	if queued == nil {
		queued = new(serial.Slot)
		s.queuedAnswer.Store(queued)
	}
	queued.Enqueue(&s.join.events, func() { s.answered(a) })
}
