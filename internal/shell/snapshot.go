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

// Snapshot is the state of a policy at a point in time. It is immutable.
type Snapshot struct {
	Policy   string
	Channel  *stateattr.Channel
	State    connectivity.State
	Since    time.Time // when State last changed, or zero
	Error    error
	Children []ChildSnapshot
	Details  any // set by the policy, see Describer
}

// ChildSnapshot is the state of one child of a policy.
type ChildSnapshot struct {
	Name      string
	Title     string // the name that users see, or ""
	State     connectivity.State
	Since     time.Time // when State last changed, or zero
	LastError error     // the last error, even if the child has recovered
	FailedAt  time.Time
	Details   any
	// Below is the child's policy if it is Watchable, or nil.
	Below Watchable
}

// Watchable is implemented by policies that can be watched. All policies that have a Shell are
// Watchable.
type Watchable interface {
	// Watch makes this policy and all policies below it take snapshots until stop is called. It does
	// not wait for the first snapshot.
	Watch() (stop func())
	// Snapshot returns the latest snapshot. It is nil if the policy is not watched, or before the
	// first snapshot. It does not block.
	Snapshot() *Snapshot
	// Busy returns the time at which the policy began to handle the current batch of events. It is
	// zero if no event is running or the policy is not watched. It does not block.
	Busy() time.Time
}

// Describer is implemented by policies that add details to their snapshots.
type Describer interface {
	Describe(*Snapshot)
}

// Watcher is implemented by policies that do extra work while they are watched.
type Watcher interface {
	// Watched is called when the first watcher arrives and when the last one has left.
	Watched(on bool)
}

// snapshotInterval limits the cost of snapshots. The minimum time between two is snapshotInterval
// times the number of children.
const snapshotInterval = 10 * time.Microsecond

type watch struct {
	watchers atomic.Int64
	snapshot atomic.Pointer[Snapshot]
	began    atomic.Int64 // when the current batch of events began, in Unix nanoseconds, or 0

	// The following fields are used only in events.
	below map[Watchable]func()
	made  time.Time
	again serial.Timer
}

// Watch implements Watchable.
func (s *Shell) Watch() (stop func()) {
	s.watchers.Add(1)
	s.serial.Enqueue(func() {}) // the event itself does nothing, but lookAround runs after it
	return sync.OnceFunc(func() {
		s.watchers.Add(-1)
		s.serial.Enqueue(func() {})
	})
}

// Snapshot implements Watchable.
func (s *Shell) Snapshot() *Snapshot { return s.snapshot.Load() }

// lookAround makes a snapshot if the policy is watched. It is called after each batch of events.
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

// tell notifies the policy that watching begins or ends. The policy may want to publish another
// picker then, so flush runs.
func (s *Shell) tell(watched bool) {
	if w, ok := s.parts.(Watcher); ok && !s.closed {
		w.Watched(watched)
		s.serial.Enqueue(func() {}) // the event itself does nothing, but flush runs after it
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

// noteSince records the time at which a state changes, if the debug page is enabled.
func noteSince(since *int64, before, now connectivity.State) {
	if live.On() && (before != now || *since == 0) {
		*since = time.Now().UnixNano()
	}
}

type past struct {
	err error
	at  time.Time
}

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
