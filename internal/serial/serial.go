// Package serial runs one event at a time. Parents (updates, Close), children (reports) and timers
// call a load-balancing policy concurrently.
//
// Calls from children only queue their event. Children, including grpc-go's, hold locks while they
// report. An event that ran on a child's stack could therefore call back into the child and
// deadlock. Updates, Close and timers return when their event has run. ExitIdle and ResolverError
// only queue, because a parent may call them from inside its UpdateState, on the stack of an event.
// No lock is held while an event runs.
package serial

import (
	"sync"
	"sync/atomic"
)

// background counts the goroutines that run events, for all serializers.
var background atomic.Int64

// Background returns the number of goroutines that run events of this process's serializers,
// whether they were started for queued events or by timers. If it is 0, policies act only on the
// stacks of callers. A simulation uses this to detect that its policies have settled.
func Background() int { return int(background.Load()) }

// Serializer runs events one at a time in the order in which they were queued. The zero value is
// ready to use. SetHooks may be called before the first event. Do and Enqueue are safe for
// concurrent use. Enqueue may be called from inside an event. Do must not be called from inside an
// event, because it would wait for itself.
type Serializer struct {
	mu       sync.Mutex
	queue    []Event
	draining bool // a goroutine runs events

	// The following fields are used only by the goroutine that runs the events.
	background bool // it was started by a serializer or a timer
	hooks      *Hooks
	relayed    *Serializer // received an event from the last flush, and may need a goroutine
}

// Event is an action that a Serializer runs.
type Event interface{ Run() }

// Func is an Event that calls a function.
type Func func()

// Run calls the function.
func (f Func) Run() { f() }

// awaited is an event that a caller of Do waits for.
type awaited struct {
	Func
	done chan struct{}
}

// Hooks are called around each batch of events, under the same rules as events.
type Hooks struct {
	// Begin runs before a batch.
	Begin func()
	// Flush runs once all events queued so far have run, and before Do returns for any of them. It
	// is for work that many events cause and that needs to be done once.
	Flush func()
}

// SetHooks sets the hooks of later batches.
func (s *Serializer) SetHooks(hooks *Hooks) { s.hooks = hooks }

// Enqueue queues f and returns immediately. It does not run events: if no goroutine is running
// events, it starts one, which ends when the queue is empty.
func (s *Serializer) Enqueue(f func()) { s.Queue(Func(f)) }

// Queue is Enqueue for an event that is not a function, such as a frequent report.
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

// Relay queues an event of another serializer, like Queue. It must be the last action of a flush of
// s. If a goroutine of this package runs the events of s, it continues with the other serializer.
// So a report that rises through a tree uses one goroutine instead of one for each policy, whose
// stacks would have to grow.
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

// A Slot queues events of one kind of which only the last one matters: an event replaces a waiting
// event. As a result, callers that do not wait cannot make the queue long. The zero value is ready
// to use.
type Slot struct {
	mu     sync.Mutex
	latest func() // nil if none waits
}

// Enqueue is Serializer.Enqueue for events of the slot's kind.
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

// Run queues f and runs the queued events on its own stack. If events are already running, in
// another goroutine or further up this stack, Run returns immediately and f runs there. Run is for
// callers that hold no lock that an event may need, such as a subchannel that reports to a policy
// without children.
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

// Do queues f and returns when it has run. It runs earlier events and f on its own stack, unless
// another goroutine is running events. It leaves later events to another goroutine, so that a
// steady stream of them does not block the caller.
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

// runFirst makes the caller run the waiting events and f. It is called with the lock held and
// releases it.
func (s *Serializer) runFirst(f func()) {
	s.draining = true
	var one [1]Event // usually no event waits, and nothing is allocated
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

// kept is the capacity that an idle queue keeps.
const kept = 8

// drain runs batches of events until the queue is empty. It returns a serializer whose events the
// caller must run next, or nil.
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

// ifIdle returns s if it has events that no goroutine runs. The caller must run them.
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
