package shell

import (
	"time"

	"google.golang.org/grpc/balancer"
)

// Publish requests that the policy's state is published. This happens once, after the current batch
// of events or, during an update, at its end.
func (s *Shell) Publish() { s.stale = true }

// Updating reports whether an update is running: Begin has been called, and End has not returned.
func (s *Shell) Updating() bool { return s.updating }

func (s *Shell) endBatch() {
	s.ending = s.above != nil && len(s.removed) == 0
	s.flush()
	s.ending = false
	if s.settler != nil && !s.settled {
		s.settled = s.closed
		s.settler.Settled(s.closed)
	}
	s.lookAround()
	s.began.Store(0)
}

// flush publishes the policy's state if it is due now, or starts a timer if it is due later. It is
// called after each batch of events.
func (s *Shell) flush() {
	switch {
	case s.closed || s.updating || !s.configured:
		return
	case s.scheduled != nil:
		s.publishWhenDue()
	case s.stale:
		s.publish(s.parts.State())
	}
	s.closeRemoved()
}

func (s *Shell) closeRemoved() {
	for _, i := range s.removed {
		i.Close()
	}
	s.removed = nil
}

func (s *Shell) publishWhenDue() {
	at, due := s.scheduled.Due()
	if due && !at.After(time.Now()) {
		s.publish(s.parts.State())
		at, due = s.scheduled.Due()
	}
	if due {
		s.wake(at)
	}
}

func (s *Shell) wake(at time.Time) {
	if s.timer.Runs() && !at.Before(s.wakeAt) {
		return
	}
	s.wakeAt = at
	s.timer.Start(&s.serial, time.Until(at), func() {}) // the event itself does nothing, but flush runs after it
}

func (s *Shell) publish(state balancer.State) {
	if s.since.IsZero() || state.ConnectivityState != s.published.ConnectivityState {
		s.since = time.Now()
	}
	s.stale, s.published = false, state
	if s.ending {
		s.above.say(state)
		s.serial.Relay(&s.above.shell.serial, (*taking)(s.above))
		return
	}
	s.ClientConn.UpdateState(state)
}
