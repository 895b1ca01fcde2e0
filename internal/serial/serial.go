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

// Background returns how many goroutines of this process's serializers run events.
// Where it is 0, policies do things only on the stacks of callers and timers. A program
// that simulates a channel thereby knows when its policies have settled.
func Background() int { return int(background.Load()) }

// Serializer runs events one at a time, in the order in which they were queued. The
// zero value is ready to use; SetFlush may be called before the first event. Do and
// Enqueue may be called from any goroutine. Enqueue may be called from inside an event,
// but Do must not: it would wait for itself.
type Serializer struct {
	mu       sync.Mutex
	queue    []event
	draining bool
	begin    func()
	flush    func()
}

type event struct {
	Event
	done chan struct{} // nil where nobody waits
}

// Event is something to be done in its turn.
type Event interface{ Run() }

// Func is an Event that calls a function.
type Func func()

// Run calls the function.
func (f Func) Run() { f() }

// SetFlush makes flush run after each batch of events: once all events queued so far
// have been run, and before Do returns for any of them. It runs as an event does. It is
// for work that many events cause and one run can do.
func (s *Serializer) SetFlush(flush func()) { s.flush = flush }

// SetBegin makes begin run before each batch of events. It runs as an event does.
func (s *Serializer) SetBegin(begin func()) { s.begin = begin }

// Enqueue queues f and returns at once. It never runs an event itself: if nobody
// is running events, a goroutine is started that runs what is queued, and ends.
func (s *Serializer) Enqueue(f func()) { s.Queue(Func(f)) }

// Queue is Enqueue for an event that is not a function, such as a frequent report.
func (s *Serializer) Queue(e Event) {
	s.mu.Lock()
	s.queue = append(s.queue, event{Event: e})
	start := !s.draining
	s.draining = true
	s.mu.Unlock()
	if start {
		s.drainInBackground()
	}
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
	s.queue = append(s.queue, event{Event: Func(f)})
	start := !s.draining
	s.draining = true
	s.mu.Unlock()
	if start {
		s.drain(nil)
	}
}

// Do queues f and returns when it has been run. It runs the events before it,
// and f, on its own stack unless another goroutine is already running events.
func (s *Serializer) Do(f func()) {
	done := make(chan struct{})
	s.mu.Lock()
	s.queue = append(s.queue, event{Event: Func(f), done: done})
	start := !s.draining
	s.draining = true
	s.mu.Unlock()
	if start {
		s.drain(done)
	}
	<-done
}

func (s *Serializer) drainInBackground() {
	background.Add(1)
	go func() {
		defer background.Add(-1)
		s.drain(nil)
	}()
}

// drain runs batches of events until none is left. For a caller of Do it stops once the
// caller's own event is done, and a goroutine takes over, so that a steady stream of
// others' events does not keep the caller.
func (s *Serializer) drain(own chan struct{}) {
	var batch []event
	for {
		s.mu.Lock()
		if len(s.queue) == 0 {
			s.draining = false
			s.mu.Unlock()
			return
		}
		if own != nil && isClosed(own) {
			s.mu.Unlock()
			s.drainInBackground()
			return
		}
		batch, s.queue = s.queue, batch[:0]
		s.mu.Unlock()
		s.runBatch(batch)
		clear(batch)
	}
}

func (s *Serializer) runBatch(batch []event) {
	if s.begin != nil {
		s.begin()
	}
	for _, e := range batch {
		e.Run()
	}
	if s.flush != nil {
		s.flush()
	}
	for _, e := range batch {
		if e.done != nil {
			close(e.done)
		}
	}
}

func isClosed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
