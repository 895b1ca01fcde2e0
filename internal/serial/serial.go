// Package serial runs events one at a time. A load-balancing policy needs that because it is called
// concurrently by its parent (updates, Close), its children (reports) and timers.
//
// Calls from children only queue an event. Children, including those of grpc-go, hold locks while
// they report. If the event ran on their stack, it could call the child and deadlock. Updates,
// Close and timers return when their event has run. ExitIdle and ResolverError only queue an event,
// because a parent may call them from inside its UpdateState, on the stack of another event. No
// lock is held while an event runs.
package serial

import (
	"sync"
	"sync/atomic"
)

// background counts the goroutines that run events, for all serializers.
var background atomic.Int64

// Background returns the number of goroutines that run events of serializers of this process,
// started for queued events or by timers. If it is 0, events run only on the stacks of callers.
// Simulations use this to find out that all policies have settled.
func Background() int { return int(background.Load()) }

// Serializer runs events one at a time in the order in which they were queued. The zero value is
// ready to use. SetHooks may be called before the first event. Do and Enqueue are safe for
// concurrent use. Enqueue may be called from inside an event. Do must not be called from inside an
// event, because it would wait for itself.
type Serializer struct {
	mu       sync.Mutex
	queue    []Event
	draining bool // some goroutine is running events

	// The following fields are used only by the goroutine that runs events.
	background bool // that goroutine was started by this package
	hooks      *Hooks
	relayed    *Serializer // serializer to which the last flush relayed an event, and which may need a goroutine
}

// Event is an action that a Serializer runs.
type Event interface{ Run() }

// Func is an Event that calls a function.
type Func func()

// Run calls the function.
func (f Func) Run() { f() }

// awaited is an event for which a call of Do is waiting.
type awaited struct {
	Func
	done chan struct{}
}

// Hooks are called before and after each batch of events. They must obey the same rules as events.
type Hooks struct {
	// Begin runs before a batch.
	Begin func()
	// Flush runs after a batch, when all events queued so far have run, and before Do returns for
	// any of them. It is for work that needs to be done only once for many events.
	Flush func()
}

// SetHooks sets the hooks for later batches.
func (s *Serializer) SetHooks(hooks *Hooks) { s.hooks = hooks }

// Enqueue queues f and returns at once. It does not run events on its stack: if no goroutine is
// running events, it starts one, which ends when the queue is empty.
func (s *Serializer) Enqueue(f func()) { s.Queue(Func(f)) }

// Queue is Enqueue for an event that is not a function, which saves an allocation.
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

// Relay is Queue for an event of another serializer. It must be the last thing that a flush of s
// does. If s runs on a goroutine of this package, that goroutine then runs the events of the other
// serializer. A report that passes through a tree of policies therefore needs one goroutine and one
// large stack, instead of one for each policy.
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

// A Slot queues events of one kind, of which only the latest matters: a new event replaces one that
// is still queued. Callers that do not wait therefore cannot make the queue long. The zero value is
// ready to use.
type Slot struct {
	mu     sync.Mutex
	latest func() // the event that is queued, or nil
}

// Enqueue is Serializer.Enqueue for the events of this slot.
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

// Run queues f and runs all queued events on its stack. If events are running already, on another
// goroutine or further up this stack, it returns at once, and f runs there. Callers must not hold a
// lock that an event may need. An example is a subchannel that reports to a policy without
// children.
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

// Do queues f and returns when f has run. It runs f, and the events before it, on its stack, unless
// another goroutine is running events. Later events are left to another goroutine, so that a steady
// stream of them does not keep Do from returning.
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

// runFirst runs the queued events and f. It is called with s.mu locked, and unlocks it.
func (s *Serializer) runFirst(f func()) {
	s.draining = true
	var one [1]Event // no allocation in the usual case, in which no event is queued
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

// drain runs batches of events until the queue is empty. The caller must then run the events of the
// serializer that it returns, if that is not nil.
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

// ifIdle returns s if s has events and no goroutine runs them. The caller must then do so.
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
