package shell

import (
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"

	"github.com/understudy-lb/understudy/internal/live"
	"github.com/understudy-lb/understudy/internal/serial"
	"github.com/understudy-lb/understudy/internal/stateattr"
)

// Snapshot is what a policy looked like at one moment. It is never modified.
type Snapshot struct {
	Policy   string             // its name in errors and logs
	Channel  *stateattr.Channel // its channel, as the last update has it
	State    connectivity.State // as last published
	Since    time.Time          // when State became so; zero if nothing was published
	Error    error              // why calls fail, where that is known
	Children []ChildSnapshot
	Details  any // what the policy's core adds
}

// ChildSnapshot is what a policy knew of a child.
type ChildSnapshot struct {
	Name      string
	Title     string             // what people call it, if known
	State     connectivity.State // as last reported
	Since     time.Time          // when State became so; zero where that was not noted
	LastError error              // the last known, even if it is over
	FailedAt  time.Time          // when it was reported last; zero where that was not noted
	Details   any                // what the policy's core adds
	// Below is the child's policy, if it can be watched, too.
	Below Watchable
}

// Watchable is a policy that makes snapshots, as do all that are built on a Shell.
type Watchable interface {
	// Watch makes the policy, and all below it, keep a snapshot until stop is called. It
	// does not wait for the first one.
	Watch() (stop func())
	// Snapshot returns the last snapshot. It is nil before the first one and while
	// nobody watches. It never waits, whatever the policy is doing.
	Snapshot() *Snapshot
	// Busy returns since when the policy handles one batch of events, the zero time where
	// it handles none or nobody watches. It never waits.
	Busy() time.Time
}

// Describer is a policy whose core adds something to its snapshots.
type Describer interface {
	// Describe sets the Details of a snapshot and of its children.
	Describe(*Snapshot)
}

// Watcher is a policy that does more while somebody watches.
type Watcher interface {
	// Watched is called when somebody begins to watch, and when nobody does any more.
	Watched(on bool)
}

// snapshotInterval, times the number of children, is the least time between two
// snapshots.
const snapshotInterval = 10 * time.Microsecond

// watch is what a shell needs in order to be watched.
type watch struct {
	watchers atomic.Int64
	snapshot atomic.Pointer[Snapshot]
	began    atomic.Int64 // when the batch of events under way did, 0 for none

	// What follows is used in events.
	below map[Watchable]func() // how to stop watching them
	made  time.Time
	again serial.Timer
}

// Watch is described at Watchable.
func (s *Shell) Watch() (stop func()) {
	s.watchers.Add(1)
	s.serial.Enqueue(func() {}) // lookAround follows
	return sync.OnceFunc(func() {
		s.watchers.Add(-1)
		s.serial.Enqueue(func() {})
	})
}

// Snapshot is described at Watchable.
func (s *Shell) Snapshot() *Snapshot { return s.snapshot.Load() }

// lookAround makes a snapshot after a batch of events, while somebody watches.
func (s *Shell) lookAround() {
	last := s.snapshot.Load()
	if s.closed || s.watchers.Load() == 0 {
		if last != nil {
			s.snapshot.Store(nil)
			s.again.Stop()
			s.watchBelow(nil)
			s.tell(false)
		}
		return
	}
	if last == nil {
		s.tell(true)
	} else {
		due := s.made.Add(time.Duration(len(last.Children)) * snapshotInterval)
		if wait := time.Until(due); wait > 0 {
			if !s.again.Runs() {
				s.again.Start(&s.serial, wait, func() {})
			}
			return
		}
	}
	s.made = time.Now()
	next := s.look()
	s.watchBelow(next.Children)
	s.snapshot.Store(next)
}

// tell tells the policy whether it is watched, and publishes what changes thereby.
func (s *Shell) tell(watched bool) {
	if w, ok := s.parts.(Watcher); ok && !s.closed {
		w.Watched(watched)
		s.serial.Enqueue(func() {}) // flush follows
	}
}

func (s *Shell) look() *Snapshot {
	now := &Snapshot{Policy: s.name, Channel: s.channel, State: s.published.ConnectivityState, Since: s.since}
	if now.State == connectivity.TransientFailure {
		now.Error = FailureOf(s.published.Picker)
	}
	for name, c := range s.parts.Children {
		child := c.look()
		child.Name = name
		now.Children = append(now.Children, child)
	}
	if d, ok := s.parts.(Describer); ok {
		d.Describe(now)
	}
	return now
}

// watchBelow watches the policies of the children, and no others.
func (s *Shell) watchBelow(children []ChildSnapshot) {
	watched := make(map[Watchable]func())
	for _, c := range children {
		if c.Below == nil {
			continue
		}
		if stop, ok := s.below[c.Below]; ok {
			watched[c.Below] = stop
			delete(s.below, c.Below)
		} else {
			watched[c.Below] = c.Below.Watch()
		}
	}
	for _, stop := range s.below {
		stop()
	}
	s.below = watched
}

// noteSince notes when a state changed, while channels are shown.
func noteSince(since *int64, before, now connectivity.State) {
	if live.On() && (before != now || *since == 0) {
		*since = time.Now().UnixNano()
	}
}

// past is a failure that may be over.
type past struct {
	err error
	at  time.Time
}

// notePast notes a failure, while channels are shown.
func notePast(last **past, state balancer.State) {
	if live.On() && state.ConnectivityState == connectivity.TransientFailure {
		*last = &past{FailureOf(state.Picker), time.Now()}
	}
}

func timeOf(nanos int64) time.Time {
	if nanos == 0 {
		return time.Time{}
	}
	return time.Unix(0, nanos)
}

func (i *Instance) look() ChildSnapshot {
	seen := ChildSnapshot{State: i.state.ConnectivityState, Since: timeOf(i.since)}
	if i.past != nil {
		seen.LastError, seen.FailedAt = i.past.err, i.past.at
	}
	if seen.State == connectivity.TransientFailure {
		seen.LastError = FailureOf(i.state.Picker)
	}
	seen.Below, _ = i.lb.(Watchable)
	return seen
}

func (c *Child) look() ChildSnapshot {
	seen := ChildSnapshot{State: c.state.ConnectivityState, Since: timeOf(c.since), LastError: c.failed}
	if c.past != nil {
		seen.FailedAt = c.past.at
	}
	if c.current != nil {
		seen.Below, _ = c.current.lb.(Watchable)
	}
	return seen
}
