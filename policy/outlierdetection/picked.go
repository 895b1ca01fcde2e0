package outlierdetection

import (
	"google.golang.org/grpc/balancer"

	"github.com/understudy-lb/understudy/internal/lb/shell"
)

func (s *subConn) AddUser(user shell.CountedUser) {
	s.mu.Lock()
	known := s.user != nil || s.isShutdown
	s.user = user
	s.mu.Unlock()
	if !known {
		s.policy.uncountedSubConns.Add(-1)
	}
	if above, ok := s.SubConn.(shell.Counted); ok {
		above.AddUser(user)
	}
}

func (s *subConn) Picker() balancer.Picker {
	var above balancer.Picker
	if counted, ok := s.SubConn.(shell.Counted); ok {
		above = counted.Picker()
	}
	switch {
	case s.policy.rules.Load() != nil && !s.endsAbove:
		return &countingPicker{s, above}
	case above != nil:
		return above
	}
	return &shell.Fixed{SubConn: s.SubConn}
}

func (s *subConn) addDone(result *balancer.PickResult) {
	if !s.endsAbove && s.policy.rules.Load() != nil {
		result.Done = shell.Then(*s.done(), result.Done)
	}
}

var uncounted func(balancer.DoneInfo) // always nil

func (s *subConn) done() *func(balancer.DoneInfo) {
	e := s.endpoint.Load()
	if e == nil {
		return &uncounted
	}
	return &s.policy.current(e).ended
}

func (s *subConn) pickerChanged() {
	s.mu.Lock()
	user := s.user
	s.mu.Unlock()
	if user != nil {
		user.PickerChanged()
	}
}
