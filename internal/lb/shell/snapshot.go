package shell

import (
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"

	"github.com/understudy-lb/understudy/internal/lb/live"
	"github.com/understudy-lb/understudy/internal/lb/serial"
	"github.com/understudy-lb/understudy/internal/lb/stateattr"
)

// Snapshot is the state of a policy at some point in time. It's immutable.
type Snapshot struct {
	Policy   string
	Channel  *stateattr.Channel
	State    connectivity.State
	Since    time.Time
	Error    error
	Children []ChildSnapshot
	Details  any // set by Describe; one of the types in details.go
}

type ChildSnapshot struct {
	Name      string
	Title     string // users see this name; may be ""
	State     connectivity.State
	Since     time.Time
	LastError error // the last one, even if the child has recovered
	FailedAt  time.Time
	Details   any
	Below     Watchable
}

type Watchable interface {
	// Watch makes this policy and everything below it take snapshots until stop is called. It
	// doesn't wait for the first one.
	Watch() (stop func())
	// Snapshot returns the latest snapshot, or nil if there isn't one. It doesn't block.
	Snapshot() *Snapshot
	// Busy returns when the policy began to handle the current batch of events. If no event is
	// running, or the policy isn't watched, that's zero. It doesn't block.
	Busy() time.Time
}

type Describer interface {
	Describe(*Snapshot)
}

type Watcher interface {
	Watched(on bool)
}

// snapshotInterval is the minimum time between two snapshots for each child. It keeps their cost
// down.
const snapshotInterval = 10 * time.Microsecond

type watch struct {
	watchers   atomic.Int64
	snapshot   atomic.Pointer[Snapshot]
	batchStart atomic.Int64 // Unix nanoseconds; 0 if no event is running

	// only used in events
	watchedChildren map[Watchable]func()
	snapshotTime    time.Time
	snapshotTimer   serial.Timer
}

func (s *Shell) Watch() (stop func()) {
	s.watchers.Add(1)
	s.serial.Enqueue(func() {}) // an empty event is enough to run updateSnapshot
	return sync.OnceFunc(func() {
		s.watchers.Add(-1)
		s.serial.Enqueue(func() {})
	})
}

func (s *Shell) Snapshot() *Snapshot { return s.snapshot.Load() }

func (s *Shell) updateSnapshot() {
	last := s.snapshot.Load()
	if s.closed || s.watchers.Load() == 0 {
		if last != nil {
			s.snapshot.Store(nil)
			s.snapshotTimer.Stop()
			s.watchBelow(nil)
			s.notifyWatcher(false)
		}
		return
	}
	if last == nil {
		s.notifyWatcher(true)
	} else {
		due := s.snapshotTime.Add(time.Duration(len(last.Children)) * snapshotInterval)
		if wait := time.Until(due); wait > 0 {
			if !s.snapshotTimer.Runs() {
				s.snapshotTimer.Start(&s.serial, wait, func() {})
			}
			return
		}
	}
	s.snapshotTime = time.Now()
	next := s.newSnapshot()
	s.watchBelow(next.Children)
	s.snapshot.Store(next)
}

func (s *Shell) notifyWatcher(watched bool) {
	if w, ok := s.methods.(Watcher); ok && !s.closed {
		w.Watched(watched)
		s.serial.Enqueue(func() {}) // an empty event is enough to run flush
	}
}

func (s *Shell) newSnapshot() *Snapshot {
	snapshot := &Snapshot{Policy: s.name, Channel: s.channel, State: s.published.ConnectivityState, Since: s.stateSince}
	if snapshot.State == connectivity.TransientFailure {
		snapshot.Error = FailureOf(s.published.Picker)
	}
	for name, c := range s.methods.Children {
		child := c.childSnapshot()
		child.Name = name
		snapshot.Children = append(snapshot.Children, child)
	}
	if d, ok := s.methods.(Describer); ok && s.configured {
		d.Describe(snapshot)
	}
	return snapshot
}

func (s *Shell) watchBelow(children []ChildSnapshot) {
	watched := make(map[Watchable]func())
	for _, c := range children {
		if c.Below == nil {
			continue
		}
		if stop, ok := s.watchedChildren[c.Below]; ok {
			watched[c.Below] = stop
			delete(s.watchedChildren, c.Below)
		} else {
			watched[c.Below] = c.Below.Watch()
		}
	}
	for _, stop := range s.watchedChildren {
		stop()
	}
	s.watchedChildren = watched
}

// recordChange only does anything if there's a debug page, since nobody else looks at this time.
func recordChange(since *int64, before, now connectivity.State) {
	if live.Enabled() && (before != now || *since == 0) {
		*since = time.Now().UnixNano()
	}
}

type failureRecord struct {
	err  error
	time time.Time
}

func recordFailure(last **failureRecord, state balancer.State) {
	if live.Enabled() && state.ConnectivityState == connectivity.TransientFailure {
		*last = &failureRecord{FailureOf(state.Picker), time.Now()}
	}
}

func timeOf(nanos int64) time.Time {
	if nanos == 0 {
		return time.Time{}
	}
	return time.Unix(0, nanos)
}

func (i *Instance) childSnapshot() ChildSnapshot {
	snapshot := ChildSnapshot{State: i.state.ConnectivityState, Since: timeOf(i.since)}
	if i.lastFailure != nil {
		snapshot.LastError, snapshot.FailedAt = i.lastFailure.err, i.lastFailure.time
	}
	if snapshot.State == connectivity.TransientFailure {
		snapshot.LastError = FailureOf(i.state.Picker)
	}
	snapshot.Below, _ = i.lb.(Watchable)
	return snapshot
}

func (c *Child) childSnapshot() ChildSnapshot {
	snapshot := ChildSnapshot{State: c.state.ConnectivityState, Since: timeOf(c.since), LastError: c.lastError}
	if c.lastFailure != nil {
		snapshot.FailedAt = c.lastFailure.time
	}
	if c.current != nil {
		snapshot.Below, _ = c.current.lb.(Watchable)
	}
	return snapshot
}
