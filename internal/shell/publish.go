package shell

import (
	"time"

	"google.golang.org/grpc/balancer"
)

// Publish has the policy's state published once, after the events that are queued now
// or, during an update, at its end.
func (s *Shell) Publish() { s.stale = true }

// flush publishes the policy's state after a batch of events, if it is due, or sees to
// it that it is published later.
func (s *Shell) flush() {
	switch {
	case s.closed || s.updating || !s.configured:
	case s.scheduled != nil:
		s.publishWhenDue()
	case s.stale:
		s.publish(s.parts.State())
	}
}

func (s *Shell) publishWhenDue() {
	due := s.scheduled.Due()
	if due.IsZero() {
		return
	}
	if wait := time.Until(due); wait > 0 {
		s.wake(due, wait)
		return
	}
	s.publish(s.parts.State())
	if due = s.scheduled.Due(); !due.IsZero() {
		s.wake(due, time.Until(due))
	}
}

// wake makes flush run again when the policy is due.
func (s *Shell) wake(due time.Time, wait time.Duration) {
	if s.timer.Runs() && !due.Before(s.dueAt) {
		return
	}
	s.dueAt = due
	s.timer.Start(&s.serial, wait, func() {}) // flush follows
}

func (s *Shell) publish(state balancer.State) {
	if s.since.IsZero() || state.ConnectivityState != s.published.ConnectivityState {
		s.since = time.Now()
	}
	s.stale, s.published = false, state
	s.ClientConn.UpdateState(state)
}
