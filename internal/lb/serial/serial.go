// Package serial runs events one at a time. A load-balancing policy needs this: its parent
// (updates, Close), its children (reports) and timers call it concurrently.
//
// Calls from children only queue an event. Children, including those of grpc-go, hold locks while
// they report, so an event on their stack could call the child and deadlock. Updates, Close and
// timers return when their event has run. ExitIdle and ResolverError only queue an event, since a
// parent may call them from inside its UpdateState, on the stack of another event. We hold no lock
// while an event runs.
package serial

import (
	"sync"
	"sync/atomic"
)

var background atomic.Int64

// Background returns the number of goroutines of this package, including those of its timers, that
// are running events in this process. If it is 0, events run only on the stacks of callers.
// Simulations wait until it is 0.
func Background() int { return int(background.Load()) }

// Serializer runs events one at a time, in the order in which they were queued. The zero value is
// ready to use. SetHooks may be called before the first event. Do and Enqueue are safe for
// concurrent use. An event may call Enqueue, but not Do, which would wait for the event itself.
type Serializer struct {
	mu       sync.Mutex
	queue    []Event
	draining bool

	// Only the goroutine that runs events uses these.
	background  bool
	hooks       *Hooks
	relayTarget *Serializer // the serializer whose events must run after the last flush relayed an event to it, or nil
}

// Event is an action that a Serializer runs.
type Event interface{ Run() }

// Func is an Event that calls a function.
type Func func()

func (f Func) Run() { f() }

type awaitedEvent struct {
	Func
	done chan struct{}
}

// Hooks are called before and after each batch of events. Like events, they run one at a time.
type Hooks struct {
	Begin func()
	// Flush runs at the end of a batch, for work that is needed only once after several events. Do
	// returns after Flush.
	Flush func()
}

// SetHooks sets the hooks for later batches.
func (s *Serializer) SetHooks(hooks *Hooks) { s.hooks = hooks }

// Enqueue queues f and returns immediately. It does not run events on the caller's stack. If no
// goroutine is running events, it starts a goroutine, which ends when the queue is empty.
func (s *Serializer) Enqueue(f func()) { s.Queue(Func(f)) }

// Queue is like Enqueue, for a value that implements Event. It avoids the allocation of a function.
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

// Relay is like Queue, for an event of another serializer. Only the Flush hook of s may call it, as
// its last action. If s runs on a goroutine of this package, the same goroutine then runs the
// events of the other serializer: a report that passes through a tree of policies needs one
// goroutine with a large stack, and not one for each policy.
func (s *Serializer) Relay(to *Serializer, e Event) {
	if !s.background {
		to.Queue(e)
		return
	}
	to.mu.Lock()
	to.queue = append(to.queue, e)
	to.mu.Unlock()
	s.relayTarget = to
}

// A Slot queues events of which we only need the latest: a new one replaces one that is still
// queued, so callers cannot fill the queue although they do not wait. The zero value is ready to
// use.
type Slot struct {
	mu     sync.Mutex
	latest func()
}

// Enqueue is like Serializer.Enqueue, for the events of this slot.
func (slot *Slot) Enqueue(s *Serializer, f func()) {
	slot.mu.Lock()
	isQueued := slot.latest != nil
	slot.latest = f
	slot.mu.Unlock()
	if isQueued {
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

// Run queues f and runs all queued events on the caller's stack. If events are already running on
// another goroutine or further up this stack, f runs there later, and Run returns immediately. The
// caller must not hold a lock that an event may need. An example of such a caller is a subchannel
// that reports to a policy without children.
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

// Do queues f and returns when f has run. If no goroutine is running events, the caller's goroutine
// runs the events before f, and then f. A new goroutine runs the events after f, so that Do returns
// even if new events are continually queued.
func (s *Serializer) Do(f func()) {
	s.mu.Lock()
	if s.draining {
		done := make(chan struct{})
		s.queue = append(s.queue, awaitedEvent{f, done})
		s.mu.Unlock()
		<-done
		return
	}
	s.runFirst(f)
	s.mu.Lock()
	s.draining = len(s.queue) > 0
	hasMore := s.draining
	s.mu.Unlock()
	if hasMore {
		s.drainInBackground()
	}
}

// The caller must hold s.mu; this unlocks it.
func (s *Serializer) runFirst(f func()) {
	s.draining = true
	var one [1]Event // avoids an allocation in the usual case of an empty queue
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

// A queue that is empty keeps a slice up to this capacity.
const maxIdleCapacity = 8

// The caller must also drain the result, if there is one.
func (s *Serializer) drain() (next *Serializer) {
	var batch []Event
	for {
		s.mu.Lock()
		if len(s.queue) == 0 {
			relayed := s.relayTarget
			s.relayTarget, s.draining = nil, false
			if cap(batch) <= maxIdleCapacity {
				s.queue = batch[:0]
			}
			s.mu.Unlock()
			return relayed.ifIdle()
		}
		batch, s.queue = s.queue, batch[:0]
		s.mu.Unlock()
		if next := s.relayTarget.ifIdle(); next != nil {
			next.drainInBackground() // next must not wait until s has run all its events
		}
		s.relayTarget = nil
		s.runBatch(batch)
		clear(batch)
	}
}

// The result is s if it has events and no goroutine runs them: the caller must then drain it.
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
		if a, ok := e.(awaitedEvent); ok {
			close(a.done)
		}
	}
}
