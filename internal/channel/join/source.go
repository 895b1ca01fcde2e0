package join

import (
	"errors"
	"fmt"
	"time"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/channel/topology"
	core "github.com/understudy-lb/understudy/internal/core/join"
	"github.com/understudy-lb/understudy/internal/lb/serial"
	"github.com/understudy-lb/understudy/internal/text/printable"
)

func (j *Join) addSource(a *core.Action) *source {
	s := &source{join: j, Mechanism: *a.Given.(*Mechanism), id: a.ID, parent: j.sources[a.Parent]}
	if s.parent != nil {
		if s.parent.Key != nil {
			s.Key = storeKey{s.parent.Key, s.Name}
		}
		s.ServerName, s.TrustNames, s.entry = s.parent.ServerName, s.parent.TrustNames, s.parent.entry
	}
	s.Name = a.Name
	for _, other := range j.sources {
		if other.Name == s.Name && other.parent == s.parent {
			s.inherited, s.succeeds = other.inherited, true
		}
	}
	if s.inherited == nil {
		s.inherited = &inherited{topology.Translator{Name: j.childName(s.Name), ServerName: s.ServerName, TrustNames: s.TrustNames}, make(lastTexts), time.Time{}}
	}
	lastGood.acquire(s.Key)
	j.sources[a.ID] = s
	return s
}

func (j *Join) startSource(s *source) {
	var accepts core.Hears
	if !j.closed.Load() && !s.removed.Load() {
		stored, _ := s.kept()
		started, err := s.Source.Start(s.receiver(stored))
		if err == nil {
			s.running = &started
			accepts = core.Hears{ResolveNow: started.ResolveNow != nil, EndpointsFailed: started.EndpointsFailed != nil}
		} else {
			j.notStarted(s, err)
		}
	}
	j.events.Do(func() { j.execute(j.core.Started(time.Now(), s.id, accepts)) })
}

// If we're replacing a mechanism, its answer may well be in use right now, so it's good enough for
// us no matter how old it is.
func (s *source) kept() (core.Kept, bool) {
	earliest := time.Now().Add(-keepFor)
	if s.succeeds {
		earliest = time.Time{}
	}
	return lastGood.get(s.Key, earliest)
}

func (j *Join) notStarted(s *source, err error) {
	text := j.textOf(err)
	j.events.Do(func() {
		j.count(s, resultOf(err))
		j.execute(j.core.Failed(time.Now(), s.id, text))
		if len(j.config.Mechanisms) == 1 && s.parent == nil && j.core.Statuses()[0].Phase == core.Failed {
			if j.startErr = err; s.Name != "" {
				j.startErr = fmt.Errorf("%s: %w", printable.Quote(s.Name), err)
			}
		}
	})
}

func (s *source) confirmedUntil(otherwise time.Time) time.Time {
	if s.running != nil && s.running.Confirmed != nil {
		return s.running.Confirmed()
	}
	return otherwise
}

func (s *source) stop() {
	lastGood.release(s.Key, time.Now())
	started := s.running
	s.running = nil
	if started != nil && started.Close != nil {
		started.Close()
	}
}

func (j *Join) call(s *source, f func(*discovery.Started)) {
	if s.running != nil && !j.closed.Load() {
		f(s.running)
	}
}

func (s *source) receiver(stored core.Kept) *discovery.Receiver {
	j := s.join
	if c, _ := stored.Answer.Content.(*topology.Checked); c != nil {
		s.latestAnswer.Store(c)
	}
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

func (s *source) isClosed() bool { return s.join.closed.Load() || s.removed.Load() }

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

// Answers are queued, unless they come from a gRPC resolver, which wants to know if the channel
// returns an error. Those go to the channel on the caller's stack. But if other events are running
// at the time, we don't wait for our turn and return nil.
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
	answer := core.Answer{Content: last, Why: last.Unusable, Version: a.Version, Names: lookups(a.Names)}
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
	for i := range mechanisms {
		outliers, err := topology.ParseOutlierDetection(mechanisms[i].OutlierDetection)
		if err != nil {
			s.fail(fmt.Errorf("mechanism %q: %w", mechanisms[i].Name, err))
			return
		}
		list = append(list, coreMechanism(&Mechanism{Mechanism: mechanisms[i], outliers: outliers}))
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
