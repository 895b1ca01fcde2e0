// Package serial runs events one at a time. Load-balancing policies need this because there's a lot
// going on concurrently: updates and Close come from the parent, reports come from children, and
// timers fire.
//
// Calls from children only queue an event. Children hold locks while they report (so do grpc-go's),
// and if we ran events on their stack, an event that calls the child could deadlock. Updates, Close
// and timers return when their event has run. ExitIdle and ResolverError just queue an event, since
// a parent may call them from within its UpdateState, on the stack of another event. While an event
// runs, we don't hold any locks.
package serial

import (
	"sync"
	"sync/atomic"
)

var background atomic.Int64

// Background returns how many of our goroutines, including timers, are running events in this
// process. If it's 0, events are only running on the stacks of callers. Simulations wait for that.
func Background() int { return int(background.Load()) }

// Serializer runs events one at a time, in the order in which they were queued. The zero value is
// ready to use. SetHooks may only be called before the first event. Do and Enqueue are safe for
// concurrent use. An event may call Enqueue, but not Do, as it would wait for itself.
type Serializer struct {
	mu       sync.Mutex
	queue    []Event
	draining bool

	// Only used by the goroutine that runs events.
	background  bool
	hooks       *Hooks
	relayTarget *Serializer // set if the last flush relayed an event there; we must run that serializer's events afterwards
}

type Event interface{ Run() }

type Func func()

func (f Func) Run() { f() }

type awaitedEvent struct {
	Func
	done chan struct{}
}

// Hooks are called before and after each batch of events. Like events, they run one at a time.
type Hooks struct {
	Begin func()
	// Flush runs at the end of a batch, so it's the place for work that's needed only once after
	// several events. Do doesn't return until Flush has.
	Flush func()
}

func (s *Serializer) SetHooks(hooks *Hooks) { s.hooks = hooks }

// Enqueue queues f and returns immediately, without running any events on the caller's stack. If no
// goroutine is running events, it starts one, which ends when the queue is empty.
func (s *Serializer) Enqueue(f func()) { s.Queue(Func(f)) }

// Queue is like Enqueue for a value that implements Event, which saves allocating a function.
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

// Relay is like Queue for an event of another serializer. Only the Flush hook of s may call it, and
// only as its last action. If s is running on one of our goroutines, that goroutine continues with
// the other serializer's events. So when a report travels up a tree of policies, it takes one
// goroutine with a large stack, rather than one per policy.
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

// Slot is for events where only the latest one matters. It replaces the previous one if that's
// still queued, so callers that don't wait can't fill up the queue. The zero value is ready to use.
type Slot struct {
	mu     sync.Mutex
	latest func()
}

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
// another goroutine, or further up this stack, Run returns immediately and f runs there later. The
// caller must not hold any lock that an event might need. This is for e.g. a subchannel that
// reports to a policy without children.
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

// Do queues f and returns once it has run. If nobody else is running events, we run everything up
// to f right here, and leave the rest to a new goroutine. That way, Do returns even if new events
// keep coming in.
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

// runFirst must be called with s.mu held, and unlocks it.
func (s *Serializer) runFirst(f func()) {
	s.draining = true
	var one [1]Event // saves an allocation if the queue is empty, as it usually is
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

// maxIdleCapacity is the capacity up to which an empty queue keeps its slice.
const maxIdleCapacity = 8

// drain returns another serializer that the caller must also drain, or nil.
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
			next.drainInBackground() // next shouldn't have to wait until all events of s have run
		}
		s.relayTarget = nil
		s.runBatch(batch)
		clear(batch)
	}
}

// ifIdle returns s if it has events and nobody is running them. In that case, the caller must drain
// it.
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
