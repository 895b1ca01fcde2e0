// Package serial runs one event at a time. A load-balancing policy is called from above
// (updates, Close), from below (its children's reports) and by timers, all at once.
//
// Calls from below only queue. Children, grpc-go's own among them, hold locks while
// they report, so an event on their stack could call back into them and deadlock.
// Updates, Close and timers wait for their turn, and return when their event has been
// applied. ExitIdle and ResolverError only queue, too: a parent may call them from
// inside its UpdateState, on the stack of an event. No lock is held while an event
// runs.
package serial

import (
	"sync"
	"sync/atomic"
)

// background counts the goroutines that run events, for all serializers.
var background atomic.Int64

// Background returns how many goroutines of this process's serializers run events: those
// that queueing starts, and those of timers. Where it is 0, policies do things only on the
// stacks of callers. A program that simulates a channel thereby knows when its policies
// have settled.
func Background() int { return int(background.Load()) }

// Serializer runs events one at a time, in the order in which they were queued. The
// zero value is ready to use; SetHooks may be called before the first event. Do and
// Enqueue may be called from any goroutine. Enqueue may be called from inside an event,
// but Do must not: it would wait for itself.
type Serializer struct {
	mu       sync.Mutex
	queue    []Event
	draining bool // somebody runs events

	// What follows is for whoever that is.
	background bool // a goroutine of ours
	hooks      *Hooks
	relayed    *Serializer // that got an event from the last flush, and may have nobody to run it
}

// Event is something to be done in its turn.
type Event interface{ Run() }

// Func is an Event that calls a function.
type Func func()

// Run calls the function.
func (f Func) Run() { f() }

// awaited is an event that somebody waits for.
type awaited struct {
	Func
	done chan struct{}
}

// Hooks are run around each batch of events, as an event is.
type Hooks struct {
	// Begin is run before a batch.
	Begin func()
	// Flush is run once all events queued so far have been run, and before Do returns
	// for any of them. It is for work that many events cause and one run can do.
	Flush func()
}

// SetHooks makes the hooks run from now on.
func (s *Serializer) SetHooks(hooks *Hooks) { s.hooks = hooks }

// Enqueue queues f and returns at once. It never runs an event itself: if nobody
// is running events, a goroutine is started that runs what is queued, and ends.
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

// Relay queues an event of another serializer, as Queue does. It is for the last thing
// that a flush of s does. Where a goroutine of ours runs s's events, it goes on with the
// other's. So a report that rises through a tree takes one goroutine and not one for
// each policy, whose stack would have to grow again.
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

// A Slot queues events of one kind, of which only the last matters: an event that comes
// while another still waits replaces it. So callers that do not wait cannot make the
// queue long. The zero value is ready to use.
type Slot struct {
	mu     sync.Mutex
	latest func() // nil where none waits
}

// Enqueue is Serializer.Enqueue, for events of the slot's kind.
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

// Run queues f and runs what is queued on its own stack. If events are being run
// already, by another goroutine or further up this stack, it returns at once and f runs
// there. It is for callers that hold no lock which an event may want, as when a
// subchannel reports to a policy without children.
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

// Do queues f and returns when it has been run. It runs the events before it,
// and f, on its own stack unless another goroutine is already running events. Those that
// come meanwhile it leaves to a goroutine, so that a steady stream of others' events does
// not keep the caller.
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

// runFirst makes the caller the one who runs events, and runs those that wait and f. It
// is called with the lock held, and releases it.
func (s *Serializer) runFirst(f func()) {
	s.draining = true
	var one [1]Event // most often nothing waits, and nothing is allocated
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

// kept is how many places an idle serializer keeps for its next events.
const kept = 8

// drain runs batches of events until none is left. It returns a serializer whose events
// the caller is to drain next, nil for none.
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
			next.drainInBackground() // it is not to wait for more of ours
		}
		s.relayed = nil
		s.runBatch(batch)
		clear(batch)
	}
}

// ifIdle returns s if it has events and nobody who runs them. Then the caller is to.
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
