package join

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/understudy-lb/understudy/discovery"
	core "github.com/understudy-lb/understudy/internal/core/join"
	"github.com/understudy-lb/understudy/internal/lastgood"
	"github.com/understudy-lb/understudy/internal/printable"
	"github.com/understudy-lb/understudy/internal/serial"
	"github.com/understudy-lb/understudy/internal/topology"
)

func (j *Join) add(a *core.Action) *slot {
	s := &slot{Mechanism: *a.Given.(*Mechanism), id: a.ID, whole: j.slots[a.Whole]}
	if s.whole != nil {
		if s.whole.Key != nil {
			s.Key = partKey{s.whole.Key, s.Name}
		}
		s.ServerName, s.TrustNames = s.whole.ServerName, s.whole.TrustNames
	}
	s.Name = a.Name
	if heir := j.slots[a.Heir]; heir != nil {
		s.naming, s.of, s.tree, s.noted = heir.naming, heir.of, heir.tree, heir.noted
	} else {
		s.naming = j.newNaming(s)
	}
	lastgood.Process.Begin(s.Key)
	j.slots[a.ID] = s
	return s
}

// remembered returns DNS lookups from earlier answers that a source may use when it starts.
func (j *Join) remembered(s *slot, a *core.Action) map[string]discovery.Name {
	now := time.Now()
	said, age, there := lastgood.Process.Get(s.Key, now)
	known, _ := a.Answer.Names.(lastgood.Names)
	switch {
	case !a.Inherited:
		return said.Names.Since(now.Add(-lastgood.For), now.Add(-age))
	case !a.At.IsZero():
		age = 0
	case !there:
		age = lastgood.For // the stored answer has expired, so it is at least this old
	}
	return known.Since(time.Time{}, now.Add(-age))
}

func (j *Join) startSource(s *slot, remembered map[string]discovery.Name) {
	if j.closed.Load() {
		j.events.Do(j.event(func(now time.Time) []core.Action { return j.core.NotStarted(now, s.id, "") }))
		return
	}
	started, err := s.Source.Start(j.receiver(s, remembered))
	if err != nil {
		text := j.textOf(err)
		j.events.Do(j.event(func(now time.Time) []core.Action {
			j.count(s, resultOf(err))
			actions := j.core.NotStarted(now, s.id, text)
			if _, some := j.core.Said(s.id); !some && len(j.config.Mechanisms) == 1 && s.whole == nil {
				if j.vain = err; s.Name != "" {
					j.vain = fmt.Errorf("%s: %w", printable.Quote(s.Name), err)
				}
				j.closed.Store(true) // the caller of Start gets an error, so the channel must not get an update
			}
			return actions
		}))
		return
	}
	s.started = &started
	hears := core.Hears{LookAgain: started.ResolveNow != nil, Failures: started.EndpointsFailed != nil}
	j.events.Do(j.event(func(now time.Time) []core.Action { return j.core.Started(now, s.id, hears) }))
}

func (s *slot) confirm(said lastgood.Said) {
	at := time.Now()
	if s.started != nil && s.started.Confirmed != nil {
		at = s.started.Confirmed()
	}
	confirm(s.Key, said, at)
}

func (s *slot) stop() {
	lastgood.Process.End(s.Key)
	started := s.started
	s.started = nil
	if started != nil && started.Close != nil {
		started.Close()
	}
}

func (j *Join) call(s *slot, f func(*discovery.Started)) {
	if s.started != nil && !j.closed.Load() {
		f(s.started)
	}
}

func (j *Join) receiver(s *slot, remembered map[string]discovery.Name) *discovery.Receiver {
	in := &inlet{join: j, slot: s}
	return new(discovery.Receiver).With(discovery.Hooks{
		Update:  in.update,
		Fail:    func(err error) { in.fail(err, resultOf(err)) },
		Confirm: func() { in.say(func(now time.Time) []core.Action { return j.core.Confirmed(now, s.id) }) },
		Unconfirmed: func(err error, until time.Time) {
			text := ""
			if err != nil {
				text = j.textOf(err)
			}
			in.say(func(now time.Time) []core.Action { return j.core.Doubted(now, s.id, text, until) })
		},
		Rejected: func(err error) {
			text := j.textOf(err)
			in.say(func(now time.Time) []core.Action {
				j.count(s, wasRefused)
				j.core.Rejected(now, s.id, text)
				return nil
			})
		},
		Trying: func(text string) {
			if text != "" {
				text = j.textOf(errors.New(text))
			}
			in.say(func(now time.Time) []core.Action { return j.core.Trying(now, s.id, text) })
		},
		Parts: in.parts,
		Remembered: func() map[string]discovery.Name {
			if in.over() {
				return nil
			}
			return remembered
		},
	})
}

type inlet struct {
	join  *Join
	slot  *slot
	last  atomic.Pointer[heard]
	waits atomic.Pointer[serial.Slot] // the queued answer; nil if none is queued, or if another report was queued after it
}

type heard struct {
	*topology.Checked
	identity string
}

func (h *heard) checked() *topology.Checked {
	if h == nil {
		return nil
	}
	return h.Checked
}

// repeats reports whether answer a has the same content as h. Their identities may differ.
func (h *heard) repeats(a discovery.Answer) bool {
	if a.Identity != "" && a.Identity == h.identity {
		a.Identity = h.Identity
		return topology.Equal(h.Answer, &a)
	}
	return topology.EqualContent(h.Answer, &a)
}

func (in *inlet) over() bool { return in.join.closed.Load() || in.slot.gone.Load() }

func (in *inlet) say(actions func(time.Time) []core.Action) {
	if in.over() {
		return
	}
	in.waits.Store(nil)
	in.join.events.Enqueue(in.join.event(actions))
}

func (in *inlet) fail(err error, r result) {
	text := in.join.textOf(err)
	in.say(func(now time.Time) []core.Action {
		in.join.count(in.slot, r)
		return in.join.core.Failed(now, in.slot.id, text)
	})
}

// update checks an answer and queues it. An answer from a gRPC resolver is instead passed to the
// channel on the caller's stack, so that update can return the channel's error. If events are
// already running, they handle it, and update returns nil.
func (in *inlet) update(a discovery.Answer) error {
	if in.over() {
		return nil
	}
	last := in.last.Load()
	switch {
	case last == nil || !last.repeats(a):
		err := topology.CheckSome(&a)
		var c *topology.Checked
		if err == nil {
			c, err = topology.CheckAfter(&a, last.checked())
		}
		if err != nil {
			in.fail(err, wasRefused)
			return err
		}
		last = &heard{c, a.Identity}
		in.last.Store(last)
	case last.identity != a.Identity:
		last = &heard{last.Checked, a.Identity}
		in.last.Store(last)
	}
	said := answer(last.Checked, a.Version, lastgood.Names(a.Names))
	if a.Resolved == nil {
		in.put(said)
		return nil
	}
	by := &caller{id: in.slot.id}
	in.waits.Store(nil)
	in.join.events.Run(func() {
		in.join.caller = by
		in.join.answered(in.slot, said)
	})
	if err := by.verdict.Load(); err != nil {
		return *err
	}
	return nil
}

// answered passes an answer to core.Core. It must be called in an event.
func (j *Join) answered(s *slot, a core.Answer) {
	last, some := j.core.Said(s.id)
	if c, _ := last.Content.(*topology.Checked); some && c != nil && c != a.Content && topology.Equal(c.Answer, a.Content.(*topology.Checked).Answer) {
		a.Content = c // core.Core compares contents by pointers, so an equal content must have the same one
	}
	j.do(j.core.Answered(time.Now(), s.id, a))
}

func (in *inlet) parts(parts []discovery.Mechanism) {
	var list []core.Mechanism
	for i := range parts {
		if _, err := topology.ParseOutlierDetection(parts[i].OutlierDetection); err != nil {
			in.fail(fmt.Errorf("part %q: %w", parts[i].Name, err), gaveNone)
			return
		}
		list = append(list, given(&parts[i], nil))
	}
	in.say(func(now time.Time) []core.Action { return in.join.core.Replaced(now, in.slot.id, list) })
}

// put queues an answer. If an earlier answer is still queued, the new one replaces it. Otherwise, a
// source that is faster than the channel would fill the queue.
func (in *inlet) put(a core.Answer) {
	slot := in.waits.Load()
	if slot == nil {
		slot = new(serial.Slot)
		in.waits.Store(slot)
	}
	slot.Enqueue(&in.join.events, func() { in.join.answered(in.slot, a) })
}
