package shell

import (
	"time"

	"google.golang.org/grpc/balancer"
)

// Publish asks for the policy's state to be published. That happens once, at the end of the current
// batch of events, or at the end of the update if there is one.
func (s *Shell) Publish() { s.mustPublish = true }

// Updating returns true from the call of Begin until End has returned.
func (s *Shell) Updating() bool { return s.updating }

func (s *Shell) endBatch() {
	s.isLastAction = s.parentInstance != nil && len(s.removed) == 0
	s.flush()
	s.isLastAction = false
	if s.settler != nil && !s.settled {
		s.settled = s.closed
		s.settler.Settled(s.closed)
	}
	s.updateSnapshot()
	s.batchStart.Store(0)
}

// flush ends each batch of events. It publishes what's due and starts a timer for the rest.
func (s *Shell) flush() {
	switch {
	case s.closed || s.updating || !s.configured:
		return
	case s.scheduled != nil:
		s.publishWhenDue()
	case s.mustPublish:
		s.publish(s.methods.State())
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
		s.publish(s.methods.State())
		at, due = s.scheduled.Due()
	}
	if due {
		s.publishAt(at)
	}
}

func (s *Shell) publishAt(at time.Time) {
	if s.timer.Runs() && !at.Before(s.timerEnd) {
		return
	}
	s.timerEnd = at
	s.timer.Start(&s.serial, time.Until(at), func() {}) // an empty event is enough to run flush
}

func (s *Shell) publish(state balancer.State) {
	if s.stateSince.IsZero() || state.ConnectivityState != s.published.ConnectivityState {
		s.stateSince = time.Now()
	}
	s.mustPublish, s.published = false, state
	if s.isLastAction {
		s.parentInstance.queueReport(state)
		s.serial.Relay(&s.parentInstance.shell.serial, (*reportEvent)(s.parentInstance))
		return
	}
	s.ClientConn.UpdateState(state)
}
