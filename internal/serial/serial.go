// Package serial runs events one at a time. A load-balancing policy needs this because its parent
// (updates, Close), its children (reports) and timers call it concurrently.
//
// Calls from children only queue an event. Children, including those of grpc-go, hold locks while
// they report, so an event on their stack could call the child and deadlock. Updates, Close and
// timers return when their event has run. ExitIdle and ResolverError only queue an event, because a
// parent may call them from inside its UpdateState, on the stack of another event. No lock is held
// while an event runs.
package serial

import (
	"sync"
	"sync/atomic"
)

var background atomic.Int64

// Background returns the number of goroutines of this package, and of timers, that are running
// events in this process. If it is 0, events run only on the stacks of callers. Simulations use
// this to find out that all policies have settled.
func Background() int { return int(background.Load()) }

// Serializer runs events one at a time, in the order in which they were queued. The zero value is
// ready to use. SetHooks may be called before the first event. Do and Enqueue are safe for
// concurrent use. An event may call Enqueue, but not Do, which would wait for the event itself.
type Serializer struct {
	mu       sync.Mutex
	queue    []Event
	draining bool

	// Only the goroutine that runs events uses the following fields.
	background bool
	hooks      *Hooks
	relayed    *Serializer // serializer of the last event that a flush relayed; it may need a goroutine
}

// Event is an action that a Serializer runs.
type Event interface{ Run() }

// Func is an Event that calls a function.
type Func func()

// Run calls the function.
func (f Func) Run() { f() }

type awaited struct {
	Func
	done chan struct{}
}

// Hooks are called before and after each batch of events. The rules of events apply to them.
type Hooks struct {
	Begin func()
	// Flush runs after a batch, when all events queued so far have run. Calls of Do return after
	// it. It is for work that many events need only once.
	Flush func()
}

// SetHooks sets the hooks for later batches.
func (s *Serializer) SetHooks(hooks *Hooks) { s.hooks = hooks }

// Enqueue queues f and returns at once. It does not run events on its stack. If no goroutine is
// running events, it starts one, which ends when the queue is empty.
func (s *Serializer) Enqueue(f func()) { s.Queue(Func(f)) }

// Queue is like Enqueue, for an event that is not a function. This saves an allocation.
func (s *Serializer) Queue(e Event) {
	s.mu.Lock()
	s.queue = append(s.queue, e)
	start := !s.draining
	s.draining = true
	s.mu.Unlock()
	if start {
		s.drainInBackground()
	}
}

// Relay is like Queue, for an event of another serializer. A flush of s may call it only as its
// last action. If s runs on a goroutine of this package, this goroutine then runs the events of the
// other serializer. A report through a tree of policies therefore needs one goroutine with a large
// stack, instead of one for each policy.
func (s *Serializer) Relay(to *Serializer, e Event) {
	if !s.background {
		to.Queue(e)
		return
	}
	to.mu.Lock()
	to.queue = append(to.queue, e)
	to.mu.Unlock()
	s.relayed = to
}

// A Slot queues events of one kind, of which only the latest matters: a new event replaces a queued
// one. Callers that do not wait therefore cannot fill the queue. The zero value is ready to use.
type Slot struct {
	mu     sync.Mutex
	latest func()
}

// Enqueue is like Serializer.Enqueue, for the events of this slot.
func (slot *Slot) Enqueue(s *Serializer, f func()) {
	slot.mu.Lock()
	waiting := slot.latest != nil
	slot.latest = f
	slot.mu.Unlock()
	if waiting {
		return
	}
	s.Enqueue(func() {
		slot.mu.Lock()
		f := slot.latest
		slot.latest = nil
		slot.mu.Unlock()
		f()
	})
}

// Run queues f and runs all queued events on its stack. If events are already running, on another
// goroutine or further up this stack, Run returns at once, and f runs there. The caller must not
// hold a lock that an event may need. A subchannel that reports to a policy without children calls
// Run, for example.
func (s *Serializer) Run(f func()) {
	s.mu.Lock()
	if s.draining {
		s.queue = append(s.queue, Func(f))
		s.mu.Unlock()
		return
	}
	s.runFirst(f)
	s.drain()
}

// Do queues f and returns when f has run. Unless another goroutine is running events, it runs f,
// and the events before it, on its stack. It leaves later events to another goroutine, so that it
// returns even if events keep coming.
func (s *Serializer) Do(f func()) {
	s.mu.Lock()
	if s.draining {
		done := make(chan struct{})
		s.queue = append(s.queue, awaited{f, done})
		s.mu.Unlock()
		<-done
		return
	}
	s.runFirst(f)
	s.mu.Lock()
	s.draining = len(s.queue) > 0
	more := s.draining
	s.mu.Unlock()
	if more {
		s.drainInBackground()
	}
}

// runFirst runs the queued events and f. The caller holds s.mu; runFirst unlocks it.
func (s *Serializer) runFirst(f func()) {
	s.draining = true
	var one [1]Event // saves an allocation in the usual case, in which no event is queued
	batch := append(one[:0], Func(f))
	if len(s.queue) > 0 {
		batch = append(s.queue, Func(f))
		s.queue = nil
	}
	s.mu.Unlock()
	s.background = false
	s.runBatch(batch)
}

func (s *Serializer) drainInBackground() {
	background.Add(1)
	go func() {
		if s.hooks != nil {
			growStack()
		}
		defer background.Add(-1)
		for next := s; next != nil; {
			next.background = true
			next = next.drain()
		}
	}()
}

// kept is the largest capacity of a slice that an empty queue keeps for reuse.
const kept = 8

// drain runs batches of events until the queue is empty. If it returns a serializer, the caller
// must run the events of that one.
func (s *Serializer) drain() (next *Serializer) {
	var batch []Event
	for {
		s.mu.Lock()
		if len(s.queue) == 0 {
			relayed := s.relayed
			s.relayed, s.draining = nil, false
			if cap(batch) <= kept {
				s.queue = batch[:0]
			}
			s.mu.Unlock()
			return relayed.ifIdle()
		}
		batch, s.queue = s.queue, batch[:0]
		s.mu.Unlock()
		if next := s.relayed.ifIdle(); next != nil {
			next.drainInBackground() // it must not wait for further events of s
		}
		s.relayed = nil
		s.runBatch(batch)
		clear(batch)
	}
}

// ifIdle returns s if s has events that no goroutine runs. The caller must then run them.
func (s *Serializer) ifIdle() *Serializer {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.draining || len(s.queue) == 0 {
		return nil
	}
	s.draining = true
	return s
}

func (s *Serializer) runBatch(batch []Event) {
	if s.hooks != nil {
		s.hooks.Begin()
	}
	for _, e := range batch {
		e.Run()
	}
	if s.hooks != nil {
		s.hooks.Flush()
	}
	for _, e := range batch {
		if a, ok := e.(awaited); ok {
			close(a.done)
		}
	}
}
